"""What people do with encoders: vectors of sentences, search, sparse vectors."""
import numpy

SENTENCES = ["A cat sleeps on the warm roof.", "The kitten is dozing in the sun.", "Interest rates rose again this quarter.",
             "The central bank made loans more expensive.", "How do I reset my password?", "She plays the cello in an orchestra.",
             "Bread needs flour, water, salt and yeast.", "The train to Zürich leaves at 7:45.",
             "Photosynthesis turns light into chemical energy.", "Der Hund schläft auf dem Sofa."]
QUERIES = ["a cello concert", "monetary policy", "I forgot my login", "baking a loaf", "how plants make sugar",
           "railway timetable"]
ANSWERS = [5, 2, 4, 6, 8, 7]


def vectors_of(report, model, texts, *more):
    path = report.work / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return report.array("encode", model, "--texts", path, *more)


def encodes(report, model, folder):
    """Vectors beside transformers' and sentence-transformers', and what they find."""
    def refer():
        from sentence_transformers import SentenceTransformer
        return SentenceTransformer(str(folder), device="cpu").encode(SENTENCES, batch_size=1)

    ours = vectors_of(report, model, SENTENCES)
    report.near("vectors of sentences", ours, refer, 1e-5)
    small = report.work / "small.fovea"
    report.run("convert", folder, "-o", small, "--type", "q8")
    rounded = vectors_of(report, small, SENTENCES)
    distance = 1 - (ours * rounded).sum(1).min()
    report.row("the same in q8", f"{small.stat().st_size / model.stat().st_size:.0%} of the bytes", "f32",
               f"cosine distance {distance:.4f}", distance < 0.003)
    small.unlink()
    found = (vectors_of(report, model, QUERIES) @ ours.T).argmax(1).tolist()
    report.true("search", f"{sum(map(int.__eq__, found, ANSWERS))} of {len(QUERIES)} found", "by hand", found == ANSWERS)


def sparse(report, model, folder):
    """Weights of words, as SPLADE makes them of a masked model's logits: log(1 + max(0, x)), the largest of all tokens."""
    def activated(logits):
        return numpy.log1p(numpy.maximum(logits, 0)).max(-2)

    def refer():
        import torch
        from transformers import AutoModelForMaskedLM, AutoTokenizer
        tokenizer, theirs = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
        with torch.no_grad():
            inputs = (tokenizer(text, return_tensors="pt", return_token_type_ids=False) for text in SENTENCES)
            return numpy.stack([activated(theirs(**each).logits[0].numpy()) for each in inputs])

    ours = numpy.stack([activated(report.array("encode", model, "-p", text, "--head")) for text in SENTENCES])
    report.near("sparse vectors", ours, refer, 1e-5)
    heaviest = ",".join(map(str, numpy.argsort(-ours[2])[:4]))
    report.text("heaviest words of " + SENTENCES[2], report.run("tokenize", folder, "--decode", heaviest).strip())
