# ./dev site [pages]: the documents as a site in build/site/html, for any server of files or none. Its links, its pictures' texts and its
# HTML are checked, and without `pages` how it looks in Chromium, which npm brings, if npm is there.
# shellcheck shell=bash disable=SC2154  # sourced by dev

package_site() {
    local folder=build/site bin=build/site/venv/bin
    python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
    [[ -x $bin/python ]] || python3 -m venv "$folder/venv"
    "$bin/pip" install -q -r packaging/site/requirements.txt
    rm -rf "$folder/pages" "$folder/html"
    say 'the pages'
    "$bin/python" -B packaging/site/pages.py . "$folder/pages"
    "$bin/sphinx-build" -q -W --keep-going -c packaging/site -d "$folder/doctrees" -b html "$folder/pages" "$folder/html"
    rm -rf "$folder/html/.buildinfo" "$folder/html/objects.inv"
    "$bin/python" -B packaging/site/check.py "$folder/html"
    [[ ${1-} != pages ]] || return 0
    command -v npm >/dev/null || { say 'without npm: not looked at in a browser' && return; }
    need_browser
    say 'the pages in a browser'
    node tests/packaging/site_test.mjs "$PWD/$folder/html" "$PWD/build/page"
}
