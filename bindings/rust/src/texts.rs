use crate::error::{c_text, check, text_of, Error, Given, Result};
use crate::ffi;
use crate::model::Model;
use std::ffi::CString;
use std::os::raw::{c_char, c_int};
use std::ptr;

/// How texts are read; zeros and `None` choose what is in brackets.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Threads [as many as CPUs].
    pub n_threads: u32,
    /// The name of a prompt of the model's, "query"; "": none [the model's choice].
    pub prompt: Option<String>,
    /// An instruction set's name, which changes no result [the CPU's best].
    pub isa: Option<String>,
    /// "[SEP]" and the like in texts are those tokens.
    pub parse_special: bool,
    /// Findings of each mask [5].
    pub n_likeliest: u32,
    /// The words of one entity are one finding, others none.
    pub joins_entities: bool,
    /// No finding where the model finds no answer likelier than any.
    pub may_lack_answer: bool,
}

/// A label with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The label's name.
    pub label: String,
    /// A probability if the model's head gives them, else its logit.
    pub score: f32,
}

/// A token of a sparse vector; those that it lacks weigh 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// The token.
    pub id: u32,
    /// Its weight.
    pub weight: f32,
}

/// What a head for words, answers or masks finds in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A word of the text; the answer; a token in a mask's place.
    pub text: String,
    /// The word's label; "" of answers and masks.
    pub label: String,
    /// Its probability.
    pub score: f64,
    /// Number of the mask.
    pub mask: usize,
}

/// Texts for C, and pointers to them.
struct Texts {
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    fn new(texts: &[&str], what: &str) -> Result<Texts> {
        let texts = texts.iter().map(|text| c_text(text, what)).collect::<Result<Vec<_>>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Ok(Texts { _texts: texts, pointers })
    }
}

impl TextOptions {
    fn with<T>(&self, call: impl FnOnce(*const ffi::fovea_host_text_options) -> Result<T>) -> Result<T> {
        let prompt = self.prompt.as_deref().map(|prompt| c_text(prompt, "prompt")).transpose()?;
        let isa = self.isa.as_deref().map(|isa| c_text(isa, "isa")).transpose()?;
        call(&ffi::fovea_host_text_options {
            n_threads: self.n_threads,
            prompt: prompt.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            isa: isa.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            n_likeliest: self.n_likeliest,
            may_lack_answer: self.may_lack_answer.into(),
            joins_entities: self.joins_entities.into(),
            parse_special: self.parse_special.into(),
            ..Default::default()
        })
    }

    /// The rows that a call makes.
    fn rows(
        &self, call: impl FnOnce(*const ffi::fovea_host_text_options, *mut *mut f32, *mut usize, *mut usize) -> c_int,
    ) -> Result<Vec<Vec<f32>>> {
        let (mut rows, mut n, mut width) = (Given::none(), 0, 0);
        self.with(|options| check(call(options, &mut rows.0, &mut n, &mut width)))?;
        // SAFETY: there are so many, which are given back by `rows`.
        Ok(unsafe { rows.values(n * width) }.chunks(width.max(1)).map(<[f32]>::to_vec).collect())
    }
}

impl Model {
    /// Values of a vector of [`Model::embed`], or of a text's scores; 0 for other models.
    pub fn width(&self) -> usize {
        // SAFETY: the handle is open.
        unsafe { ffi::fovea_host_width(self.handle()) }
    }

    /// The vector of each text, pooled and normalised as the model's source says.
    pub fn embed(&self, texts: &[&str], options: &TextOptions) -> Result<Vec<Vec<f32>>> {
        let (given, width) = (Texts::new(texts, "texts")?, self.width());
        let mut vectors = vec![0.0; texts.len() * width];
        // SAFETY: `vectors` has a row for each text.
        options.with(|options| {
            check(unsafe {
                ffi::fovea_host_embed(self.handle(), given.pointers.as_ptr(), texts.len(), options, vectors.as_mut_ptr())
            })
        })?;
        Ok(vectors.chunks(width.max(1)).map(<[f32]>::to_vec).collect())
    }

    /// The sparse vector of a text, by ids.
    pub fn embed_sparse(&self, text: &str, options: &TextOptions) -> Result<Vec<Weight>> {
        let text = c_text(text, "text")?;
        let (mut weights, mut n) = (Given::none(), 0);
        // SAFETY: the handle is open; the weights are given back by `weights`.
        options.with(|options| {
            check(unsafe { ffi::fovea_host_embed_sparse(self.handle(), text.as_ptr(), options, &mut weights.0, &mut n) })
        })?;
        // SAFETY: there are so many.
        Ok(unsafe { weights.values(n) }.iter().map(|each| Weight { id: each.id, weight: each.weight }).collect())
    }

    /// The vectors of a text's tokens, of a model of late interaction, as a query's or as a document's.
    pub fn embed_tokens(&self, text: &str, is_query: bool, options: &TextOptions) -> Result<Vec<Vec<f32>>> {
        let text = c_text(text, "text")?;
        // SAFETY: the handle is open.
        options.rows(|options, rows, n, width| unsafe {
            ffi::fovea_host_embed_tokens(self.handle(), text.as_ptr(), is_query.into(), options, rows, n, width)
        })
    }

    /// What the layers leave for each token of a text, or of a text and its pair; with `of_head` the logits of the model's head, for
    /// classes one row.
    pub fn rows(&self, text: &str, pair: Option<&str>, of_head: bool, options: &TextOptions) -> Result<Vec<Vec<f32>>> {
        let text = c_text(text, "text")?;
        let pair = pair.map(|pair| c_text(pair, "pair")).transpose()?;
        let second = pair.as_ref().map_or(ptr::null(), |pair| pair.as_ptr());
        // SAFETY: the handle is open.
        options.rows(|options, rows, n, width| unsafe {
            ffi::fovea_host_rows(self.handle(), text.as_ptr(), second, of_head.into(), options, rows, n, width)
        })
    }

    /// Each document's score for the query, by a reranker or by late interaction.
    pub fn rank(&self, query: &str, documents: &[&str], options: &TextOptions) -> Result<Vec<f64>> {
        let (query, given) = (c_text(query, "query")?, Texts::new(documents, "documents")?);
        let mut scores = vec![0.0; documents.len()];
        // SAFETY: `scores` has one for each document.
        options.with(|options| {
            check(unsafe {
                ffi::fovea_host_rank(
                    self.handle(), query.as_ptr(), given.pointers.as_ptr(), documents.len(), options, scores.as_mut_ptr(),
                )
            })
        })?;
        Ok(scores)
    }

    /// The names of the labels.
    pub fn labels(&self) -> Vec<String> {
        // SAFETY: NULL or a text of the model's.
        let name = |i| unsafe {
            let name = ffi::fovea_host_label(self.handle(), i);
            (!name.is_null()).then(|| text_of(name))
        };
        (0..).map_while(name).collect()
    }

    /// Each text's score for every label, in the labels' order.
    pub fn classify(&self, texts: &[&str], options: &TextOptions) -> Result<Vec<Vec<Score>>> {
        self.scores(texts, None, options)
    }

    /// The same for models that read two texts: a reranker's question and passage, say.
    pub fn classify_pairs(&self, pairs: &[(&str, &str)], options: &TextOptions) -> Result<Vec<Vec<Score>>> {
        let (firsts, seconds): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        self.scores(&firsts, Some(&seconds), options)
    }

    fn scores(&self, texts: &[&str], pairs: Option<&[&str]>, options: &TextOptions) -> Result<Vec<Vec<Score>>> {
        let (given, labels) = (Texts::new(texts, "texts")?, self.labels());
        let seconds = pairs.map(|pairs| Texts::new(pairs, "pairs")).transpose()?;
        let second = seconds.as_ref().map_or(ptr::null(), |seconds| seconds.pointers.as_ptr());
        if labels.len() != self.width() {
            return Err(Error::argument("model: expected one with labels, got another".into()));
        }
        let mut scores = vec![0.0; texts.len() * labels.len()];
        // SAFETY: `scores` has a row for each text.
        options.with(|options| {
            check(unsafe {
                ffi::fovea_host_classify(
                    self.handle(), given.pointers.as_ptr(), second, texts.len(), options, scores.as_mut_ptr(),
                )
            })
        })?;
        let named = |row: &[f32]| labels.iter().zip(row).map(|(label, &score)| Score { label: label.clone(), score }).collect();
        Ok(scores.chunks(labels.len().max(1)).map(named).collect())
    }

    /// What the model's head finds in a text: every word, the likeliest answer to the question `text` in the text `pair`, or the
    /// likeliest tokens of each mask.
    pub fn find(&self, text: &str, pair: Option<&str>, options: &TextOptions) -> Result<Vec<Finding>> {
        let text = c_text(text, "text")?;
        let pair = pair.map(|pair| c_text(pair, "pair")).transpose()?;
        let second = pair.as_ref().map_or(ptr::null(), |pair| pair.as_ptr());
        let (mut found, mut n) = (Given::none(), 0);
        // SAFETY: the handle is open; the findings are given back by `found`.
        options.with(|options| {
            check(unsafe { ffi::fovea_host_find(self.handle(), text.as_ptr(), second, options, &mut found.0, &mut n) })
        })?;
        // SAFETY: there are so many, with texts that live as long.
        Ok(unsafe { found.values(n) }
            .iter()
            .map(|each| unsafe {
                Finding { text: text_of(each.text), label: text_of(each.label), score: each.score, mask: each.mask }
            })
            .collect())
    }
}
