//! The crate held against the C++ library's golden models and logits. FOVEA_TREE: the tree that has them; else the crate lies in it.
use fovea::{
    ErrorKind, Finish, FormKind, GenerateOptions, Kind, Limits, Message, Model, OpenOptions, SpeechOptions, TextOptions,
    TranslateOptions,
};
use std::fs;
use std::path::PathBuf;

fn tree() -> PathBuf {
    std::env::var_os("FOVEA_TREE").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}
fn golden(name: &str) -> PathBuf {
    tree().join("tests/golden").join(name)
}
fn demo() -> Model {
    Model::open(tree().join("tools/demo/demo.fovea")).unwrap()
}

/// A callback that gathers a text.
fn into(text: &mut String) -> impl FnMut(&str) -> bool + '_ {
    |piece| {
        text.push_str(piece);
        true
    }
}

/// The float32 numbers of a .npy file of version 1.
fn npy(name: &str) -> Vec<f32> {
    let bytes = fs::read(golden(name)).unwrap();
    let begin = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[begin..].chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}
fn near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 2e-5
}

#[test]
fn versions_are_one() {
    assert_eq!(fovea::version(), env!("CARGO_PKG_VERSION"));
    assert!(fovea::default_threads() >= 1);
}

#[test]
fn logits_are_the_committed_ones() {
    let hashes = fs::read_to_string(golden("logit_hashes.txt")).unwrap();
    let wanted = hashes.lines().find_map(|line| line.strip_prefix("f32 ")).unwrap();
    let model = demo();
    let tokens = model.tokenize("turn on the garden dehumidifier\n", true, false).unwrap();
    for n_threads in [1, 2] {
        let limits = Limits { n_threads, ..Limits::default() };
        assert!(model.sequence_bytes(&limits).unwrap() > 0);
        let mut sequence = model.sequence(&limits).unwrap();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a, Fowler, Noll and Vo 1991
        for token in &tokens {
            for logit in sequence.forward(&[*token]).unwrap() {
                hash = (hash ^ u64::from(logit.to_bits())).wrapping_mul(0x100_0000_01b3);
            }
        }
        assert_eq!(format!("{hash:016x}"), wanted);
        assert_eq!(sequence.len(), tokens.len());
        let last = sequence.forward(&tokens[..1]).unwrap().to_vec();
        assert_eq!(sequence.rewind(tokens.len()).unwrap(), tokens.len());
        assert_eq!(sequence.forward(&tokens[..1]).unwrap(), last);
        let error = sequence.forward(&[u32::MAX]).unwrap_err();
        assert!(error.to_string().starts_with("token out of range"), "{error}");
    }
}

#[test]
fn a_conversation_with_and_without_a_form() {
    let model = demo();
    assert_eq!(model.kind(), Kind::Text);
    let limits = Limits { max_positions: 128, ..Limits::default() };
    assert!(model.session_bytes(&limits).unwrap() > 0);
    let mut session = model.session(&limits).unwrap();
    let messages = [Message::user("turn on the kitchen lights")];
    let options = GenerateOptions::default();
    let mut answer = String::new();
    let made = session.chat(&messages, &options, None, into(&mut answer)).unwrap();
    assert!(answer.starts_with("{\"do\":"), "{answer}");
    assert_eq!(made.finish, Finish::EndToken);
    assert!(made.n_prompt > 0 && made.n_tokens > 0);

    let mut cut = String::new();
    let made = session.chat(&messages, &options, None, |text| {
        cut.push_str(text);
        false
    });
    assert_eq!(made.unwrap().finish, Finish::Caller);
    assert!(cut.len() < answer.len() && answer.starts_with(&cut));

    let schema = r#"{"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"], "additionalProperties": false}"#;
    let form = model.form(FormKind::JsonSchema, schema).unwrap();
    let mut formed = String::new();
    session.chat(&messages, &options, Some(&form), into(&mut formed)).unwrap();
    assert!(formed.contains("\"n\"") && formed.contains("7}"), "{formed}");

    let prompt = model.render_chat(&messages, &fovea::ChatOptions::default()).unwrap();
    let tokens = model.tokenize(&prompt, true, true).unwrap();
    let mut again = String::new();
    session.generate(&tokens, &options, None, into(&mut again)).unwrap();
    assert_eq!(again, answer);
    assert!(model.detokenize(&tokens, true).unwrap().contains("kitchen"));

    let other = demo();
    let error = other.session(&limits).unwrap().chat(&messages, &options, Some(&form), |_| true).unwrap_err();
    assert_eq!((error.kind(), error.to_string().starts_with("form: expected")), (ErrorKind::Argument, true));
    assert_eq!(model.form(FormKind::Regex, "(").err().unwrap().kind(), ErrorKind::Argument);
    assert!(model.tokenize("a\0b", true, false).unwrap_err().to_string().contains("zero byte, got one at 1"));
}

#[test]
fn a_draft_changes_no_text() {
    let model = demo();
    let messages = [Message::user("turn on the kitchen lights")];
    let options = GenerateOptions { always_propose: true, ..GenerateOptions::default() };
    let mut session = model.session(&Limits { max_positions: 128, ..Limits::default() }).unwrap();
    let (mut answer, mut drafted) = (String::new(), String::new());
    let plain = session.chat(&messages, &options, None, into(&mut answer)).unwrap();
    assert_eq!((plain.n_proposed, plain.n_accepted), (0, 0));
    session.propose_by(&demo(), 3).unwrap(); // which the session keeps open
    let made = session.chat(&messages, &options, None, into(&mut drafted)).unwrap();
    assert_eq!((drafted, made.n_tokens), (answer, plain.n_tokens));
    assert!(made.n_proposed - made.n_accepted < 3); // the model guesses what it says itself, and beyond its end
    assert!(made.n_accepted > 0 && made.n_passes < plain.n_passes, "{made:?}, {plain:?}");
    let other = Model::open(golden("models/llama_tied")).unwrap();
    assert_eq!(session.propose_by(&other, 0).unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn a_saved_session_goes_on_elsewhere() {
    let model = demo();
    let messages = [Message::user("play jazz")];
    let (options, limits) = (GenerateOptions::default(), Limits { max_positions: 128, ..Limits::default() });
    let mut session = model.session(&limits).unwrap();
    let (mut answer, mut again) = (String::new(), String::new());
    let made = session.chat(&messages, &options, None, into(&mut answer)).unwrap();
    assert_eq!(made.n_kept, 0);
    let mut saved = session.save().unwrap();
    let mut other = model.session(&Limits { n_threads: 1, ..Limits::default() }).unwrap();
    other.restore(&saved).unwrap();
    assert_eq!(other.save().unwrap(), saved);
    let made = other.chat(&messages, &options, None, into(&mut again)).unwrap();
    assert_eq!((again, made.n_kept), (answer, made.n_prompt - 1)); // the last token is computed again
    let middle = saved.len() / 2;
    saved[middle] ^= 1;
    assert_eq!(other.restore(&saved).unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(other.restore(&[]).unwrap_err().kind(), ErrorKind::Failed);

    let tokens = model.tokenize("turn on", true, false).unwrap();
    let (mut first, mut second) = (model.sequence(&limits).unwrap(), model.sequence(&limits).unwrap());
    first.forward(&tokens).unwrap();
    let mut saved = first.save().unwrap();
    second.restore(&saved).unwrap();
    assert_eq!(second.len(), tokens.len());
    assert_eq!(first.forward(&tokens[..1]).unwrap(), second.forward(&tokens[..1]).unwrap());
    saved.pop();
    assert!(second.restore(&saved).is_err() && second.len() == tokens.len() + 1);
}

#[test]
fn a_conversion_says_how_far_it_is_and_can_be_ended() {
    let folder = std::env::temp_dir().join(format!("fovea-crate-{}", std::process::id())); // which no cache knows
    fs::create_dir_all(&folder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden("models/llama_tied").join(file), folder.join(file)).unwrap();
    }
    let options = OpenOptions::default();
    let error = Model::open_with_progress(&folder, &options, |_, _| false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let run = std::panic::AssertUnwindSafe(|| Model::open_with_progress(&folder, &options, |_, _| panic!("enough")).map(drop));
    assert_eq!(std::panic::catch_unwind(run).unwrap_err().downcast_ref::<&str>(), Some(&"enough"));
    let mut calls = Vec::new();
    let model = Model::open_with_progress(&folder, &options, |done, total| {
        calls.push((done, total));
        true
    });
    assert_eq!(model.unwrap().kind(), Kind::Text);
    assert!(calls.windows(2).all(|two| two[0].0 <= two[1].0), "{calls:?}");
    assert!(calls.last().map_or(false, |last| last.0 == last.1), "{calls:?}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn messages_are_json() {
    let model = demo();
    let hard = "a \"quoted\" \\ line\nand a tab\t, ü 😀";
    let prompt = model.render_chat(&[Message::user(hard)], &fovea::ChatOptions::default()).unwrap();
    assert!(prompt.contains(hard), "{prompt}");
}

#[test]
fn a_callback_that_panics_ends_the_call() {
    let model = demo();
    let mut session = model.session(&Limits::default()).unwrap();
    let run = std::panic::AssertUnwindSafe(|| {
        session.chat(&[Message::user("play jazz")], &GenerateOptions::default(), None, |_| panic!("enough"))
    });
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"enough"));
    let mut answer = String::new(); // the session goes on
    session.chat(&[Message::user("play jazz")], &GenerateOptions::default(), None, into(&mut answer)).unwrap();
    assert_eq!(answer, r#"{"do":"play","what":"jazz"}"#);
}

#[test]
fn what_is_made_of_a_model_keeps_it_open_and_moves_between_threads() {
    let mut sessions: Vec<_> = (0..2).map(|_| demo().session(&Limits { n_threads: 1, ..Limits::default() }).unwrap()).collect();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = sessions
            .iter_mut()
            .map(|session| {
                scope.spawn(move || {
                    let mut answer = String::new();
                    let options = GenerateOptions { max_new: 8, ..GenerateOptions::default() };
                    session.chat(&[Message::user("play jazz")], &options, None, into(&mut answer)).unwrap();
                    answer
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(answers[0], answers[1]);
    let model = demo();
    let shared = model.clone();
    std::thread::spawn(move || assert_eq!(shared.kind(), Kind::Text)).join().unwrap();
}

#[test]
fn vectors_are_those_of_pytorch() {
    let model = Model::open(golden("encoders/bert_sentence")).unwrap();
    assert_eq!((model.kind(), model.width()), (Kind::Vectors, 36));
    let texts = ["The lamp is on.", "Lamps, lamp; LÁMPED!", "a"];
    let wanted = npy("encoders/bert_sentence/expected_texts.npy");
    let options = TextOptions { n_threads: 2, ..TextOptions::default() };
    let vectors = model.embed(&texts, &options).unwrap();
    assert_eq!(vectors.len(), 3);
    assert!(vectors.concat().iter().zip(&wanted).all(|(&a, &b)| near(a, b)));
    assert_eq!(model.embed(&texts[1..2], &options).unwrap()[0], vectors[1]); // the same bits in any batch
    assert!(model.embed(&[], &options).unwrap().is_empty());
    let wrong = TextOptions { prompt: Some("nobody's".into()), ..TextOptions::default() };
    assert_eq!(model.embed(&texts, &wrong).unwrap_err().kind(), ErrorKind::Failed);
    assert!(model.classify(&texts, &options).is_err());
}

#[test]
fn classes_words_answers_masks_and_sparse_vectors() {
    let model = Model::open(golden("encoders/distilbert_sequenceclassification")).unwrap();
    assert_eq!(model.labels(), ["LABEL_0", "LABEL_1", "LABEL_2"]);
    let logits = npy("encoders/distilbert_sequenceclassification/expected_0.npy");
    let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
    let scores = model.classify(&["m y n b i q p m z j p l s g"], &TextOptions::default()).unwrap();
    assert!(scores[0].iter().zip(&logits).all(|(score, logit)| near(score.score, logit.exp() / sum)));
    let paired = model.classify_pairs(&[("m y n b", "e j e y")], &TextOptions::default()).unwrap();
    assert_eq!(paired[0][1].label, "LABEL_1");
    assert_eq!(model.metadata("task").unwrap().as_deref(), Some("text-classification"));
    assert_eq!(model.metadata("no such key").unwrap(), None);

    let model = Model::open(golden("encoders/albert_tokenclassification")).unwrap();
    let found = model.find("a b  c", None, &TextOptions::default()).unwrap();
    assert_eq!((found.len(), found[2].text.as_str()), (3, "c"));
    let model = Model::open(golden("encoders/xlm_roberta_questionanswering")).unwrap();
    let found = model.find("a", Some("d o g"), &TextOptions::default()).unwrap();
    assert!(found.len() == 1 && "d o g".contains(&found[0].text));
    assert_eq!(model.find("a", None, &TextOptions::default()).unwrap_err().kind(), ErrorKind::Argument);

    let model = Model::open(golden("sparse/splade")).unwrap();
    let weights = model.embed_sparse("a lamp", &TextOptions::default()).unwrap();
    assert!(!weights.is_empty() && weights.windows(2).all(|two| two[0].id < two[1].id));
    assert!(weights.iter().all(|each| each.weight > 0.0));
}

#[test]
fn rows_and_ranks() {
    let options = TextOptions::default();
    let documents = ["the lamp , on .", "a b c !"];
    let model = Model::open(golden("late/pylate")).unwrap();
    assert_eq!(model.kind(), Kind::Late);
    let rows = [model.embed_tokens("a b c", true, &options).unwrap(), model.embed_tokens(documents[1], false, &options).unwrap()];
    assert!((rows[0].len(), rows[0][0].len()) == (12, 8) && rows[1].len() < 12);
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let likest = |row: &Vec<f32>| rows[1].iter().map(|other| product(row, other)).fold(f32::MIN, f32::max);
    let scores = model.rank("a b c", &documents, &options).unwrap();
    assert!(near(scores[1] as f32, rows[0].iter().map(likest).sum()), "{scores:?}"); // each token's likest, added up
    assert!(model.rank("a b c", &[], &options).unwrap().is_empty());

    let model = Model::open(golden("rerankers/causal")).unwrap();
    let scores = model.rank("a b c", &documents, &options).unwrap();
    assert!(scores.iter().all(|&score| score > 0.0 && score < 1.0), "{scores:?}");
    assert!(model.embed_tokens("a", false, &options).is_err());

    let model = Model::open(golden("encoders/distilbert_sequenceclassification")).unwrap();
    let text = "m y n b i q p m z j p l s g";
    let logits = model.rows(text, None, true, &options).unwrap();
    let wanted = npy("encoders/distilbert_sequenceclassification/expected_0.npy");
    assert!(logits.len() == 1 && logits[0].iter().zip(&wanted).all(|(&a, &b)| near(a, b)));
    assert!(model.rows(text, None, false, &options).unwrap().len() > 1);
}

#[test]
fn translations_and_transcripts() {
    let model = Model::open(golden("pairs/marian")).unwrap();
    assert_eq!(model.kind(), Kind::Translation);
    assert!(model.translator(&TranslateOptions { n_beams: 65, ..TranslateOptions::default() }).is_err());

    let model = Model::open(golden("speech/whisper_talking")).unwrap();
    assert_eq!((model.kind(), model.sample_rate()), (Kind::Speech, 16000));
    let samples = fovea::read_sound(golden("recordings/one.wav").to_str().unwrap(), 16000).unwrap();
    let options = SpeechOptions { language: Some("de".into()), words: true, ..SpeechOptions::default() };
    let said = model.transcriber(&options).unwrap().transcribe(&samples).unwrap();
    assert_eq!(said.language, "de");
    assert_eq!(said.segments.iter().map(|each| each.text.as_str()).collect::<String>(), said.text);
    assert!(!said.segments.is_empty() && said.words.iter().all(|word| word.end >= word.start));
    let wrong = SpeechOptions { language: Some("klingon".into()), ..SpeechOptions::default() };
    assert_eq!(model.transcriber(&wrong).err().unwrap().kind(), ErrorKind::Argument);
}

#[test]
fn what_cannot_be_opened_is_said() {
    let error = Model::open("no/such.fovea").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().starts_with("no/such.fovea"), "{error}");
    let options = OpenOptions { verify: true, adapters: vec![("no/adapter.fovea".into(), 1.0)] };
    assert!(Model::open_with(tree().join("tools/demo/demo.fovea"), &options).is_err());
    assert_eq!(demo().session(&Limits::default()).unwrap().scale_adapters(&[1.0]).unwrap_err().kind(), ErrorKind::Argument);
}
