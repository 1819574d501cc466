// Markdown of the server's page, in a page that has its modules.
import assert from "node:assert/strict";

/** Text that grows is shown as text that came at once. */
export async function checkGrowth(page) {
  const words = "# A\n\npara *one*\nmore\n\n- a\n- b\n\n  in b\n\n1. x\n2. y\n\n| a | b |\n|---|---|\n| 1 | `x|y` |\n\n" +
    "~~~js\nif (a) {\n\n}\n~~~\n> q\n> - r\n\nend **bold\nstill** _x_y_ 2 * 3 * 4 a_b_c \\*no\\*\n\n## B\n#### C\n- [x] done";
  const [grown, once] = await page.evaluate(async (full) => {
    const { markdownIn } = await import("/page/markdown.js"), roots = [0, 1].map(() => document.createElement("div"));
    const grow = markdownIn(roots[0]);
    for (const at of [...full.matchAll(/\n/g)].map(({ index }) => index + 1)) grow(full.slice(0, at));
    grow(full);
    markdownIn(roots[1])(full);
    return roots.map((root) => root.innerHTML);
  }, words);
  assert.equal(grown, once);
  assert.match(once, /end <strong>bold\nstill<\/strong> <em>x_y<\/em> 2 \* 3 \* 4 a_b_c \*no\*/);
  assert.match(once, /<h4>B<\/h4><h5>C<\/h5><ul><li>☑ done<\/li><\/ul>$/);
}

/** Any text becomes elements of Markdown alone, whole or piece by piece. */
export async function checkAnyText(page) {
  const odd = await page.evaluate(async () => {
    const { markdownIn } = await import("/page/markdown.js"), found = [];
    const parts = ["*", "**", "_", "~~", "`", "``", "```", "~~~", "\n", "\n\n", " ", "    ", "- ", "1. ", "> ", "# ", "|", "|---|",
      "---", "[", "](", ")", "!", "<b>", "<br>", "https://x.y", "javascript:", "\\", "a", "é", "\t", "<script>", "[x] ",
      "\n|a|b|\n|-|-|\n|1|2|\n"];
    const known = new Set(("A BLOCKQUOTE BR BUTTON CODE DEL DIV EM H3 H4 H5 H6 HR LI OL P PRE SPAN STRONG TABLE TBODY TD TH " +
      "THEAD TR UL").split(" "));
    let state = 1;
    const below = (n) => (state = (state * 48271) % 2147483647) % n;
    for (let i = 0; i < 2000; ++i) {
      const words = Array.from({ length: 1 + below(25) }, () => parts[below(parts.length)]).join("");
      const [once, grown] = [0, 1].map(() => document.createElement("div")), grow = markdownIn(grown);
      markdownIn(once)(words);
      for (let at = 1; at <= words.length; ++at) grow(words.slice(0, at));
      const isOdd = ({ tagName, href }) => !known.has(tagName) || (href && !href.startsWith("https://"));
      if ([...once.querySelectorAll("*"), ...grown.querySelectorAll("*")].some(isOdd)) found.push(words);
    }
    return found;
  });
  assert.deepEqual(odd, []);
}
