// The addon of Node.js: a model's functions as promises, each model on a thread of its own. See ../native.mjs, which calls it.
#include <node_api.h>

#include <functional>
#include <optional>

#include "bindings/web/src/model.h"
#include "bindings/web/src/options.h"

namespace fovea::node {
namespace {

/// JavaScript has an exception under way.
struct Thrown {};

void check(napi_status status) {
    if (status != napi_ok) throw Thrown{};
}

// ---- values --------------------------------------------------------------------------------------------------------

[[nodiscard]] napi_value js(napi_env env, double number) {
    napi_value value;
    check(napi_create_double(env, number, &value));
    return value;
}
[[nodiscard]] napi_value js(napi_env env, std::string_view text) {
    napi_value value;
    check(napi_create_string_utf8(env, text.data(), text.size(), &value));
    return value;
}
[[nodiscard]] napi_value js(napi_env env, fovea_text text) {
    return js(env, std::string_view(text.bytes, text.n_bytes));
}

/// A copy as Float32Array or Uint32Array.
template<class Number>
[[nodiscard]] napi_value js(napi_env env, const std::vector<Number>& numbers) {
    void* bytes = nullptr;
    napi_value buffer, array;
    check(napi_create_arraybuffer(env, sizeof(Number) * numbers.size(), &bytes, &buffer));
    if (!numbers.empty()) std::memcpy(bytes, numbers.data(), sizeof(Number) * numbers.size());
    const auto type = std::is_same_v<Number, float> ? napi_float32_array : napi_uint32_array;
    check(napi_create_typedarray(env, type, numbers.size(), buffer, 0, &array));
    return array;
}

void set(napi_env env, napi_value object, const char* name, napi_value value) {
    check(napi_set_named_property(env, object, name, value));
}
[[nodiscard]] napi_value new_object(napi_env env) {
    napi_value object;
    check(napi_create_object(env, &object));
    return object;
}
[[nodiscard]] napi_value get(napi_env env, napi_value object, const char* name) {
    napi_value value;
    check(napi_get_named_property(env, object, name, &value));
    return value;
}
[[nodiscard]] double number_of(napi_env env, napi_value value) {
    double number = 0;
    check(napi_get_value_double(env, value, &number));
    return number;
}
/// 0 for what is no count.
[[nodiscard]] std::uint32_t count_of(napi_env env, napi_value value) {
    const double number = number_of(env, value);
    return number >= 0 && number < 4294967296.0 ? static_cast<std::uint32_t>(number) : 0xffffffffu;
}
[[nodiscard]] bool bool_of(napi_env env, napi_value value) {
    bool truth = false;
    check(napi_get_value_bool(env, value, &truth));
    return truth;
}
[[nodiscard]] std::string text_of(napi_env env, napi_value value) {
    size_t n = 0;
    check(napi_get_value_string_utf8(env, value, nullptr, 0, &n));
    std::string text(n, 0);
    check(napi_get_value_string_utf8(env, value, text.data(), n + 1, &n));
    return text;
}
/// The elements of a Uint32Array or a Uint8Array.
template<class Number>
[[nodiscard]] std::vector<Number> numbers_of(napi_env env, napi_value value) {
    napi_typedarray_type type;
    size_t n = 0;
    void* data = nullptr;
    check(napi_get_typedarray_info(env, value, &type, &n, &data, nullptr, nullptr));
    if (type != (sizeof(Number) == 4 ? napi_uint32_array : napi_uint8_array)) throw Refusal("expected another array");
    const auto* const numbers = static_cast<const Number*>(data);
    return {numbers, numbers + n};
}
/// work(element) for each.
template<class Work>
void for_each(napi_env env, napi_value array, Work work) {
    std::uint32_t n = 0;
    check(napi_get_array_length(env, array, &n));
    for (std::uint32_t i = 0; i < n; ++i) {
        napi_value element;
        check(napi_get_element(env, array, i, &element));
        work(element);
    }
}

// ---- a model's thread ----------------------------------------------------------------------------------------------

/// Work on a model's thread, and the promise of its result.
struct Job {
    virtual ~Job() = default;
    virtual void work(Model& model) = 0;
    virtual napi_value result(napi_env env) = 0;  // in JavaScript's thread
    napi_deferred promise = nullptr;
    std::optional<std::string> refusal;
};

template<class Work, class Result>
struct JobOf final : Job {
    JobOf(Work w, Result r) : work_(std::move(w)), result_(std::move(r)) {}
    void work(Model& model) override { made_ = work_(model); }
    napi_value result(napi_env env) override { return result_(env, *made_); }

private:
    Work work_;
    Result result_;
    std::optional<decltype(std::declval<Work>()(std::declval<Model&>()))> made_;
};

/// JavaScript's handle of a model, and the thread, which owns the model: it begins at `open` and ends with `close`, after which the
/// queue that brings results to JavaScript's thread ends too.
class Handle {
public:
    Handle(napi_env env, napi_value name) : thread_([this] { run(); }) {
        if (napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, ended, this, settle,
                                            &results_) != napi_ok) {
            close();
            thread_.join();
            throw Thrown{};
        }
        static_cast<void>(napi_unref_threadsafe_function(env, results_));
    }

    /// Its promise.
    napi_value add(napi_env env, std::unique_ptr<Job> job) {
        napi_value promise;
        check(napi_create_promise(env, &job->promise, &promise));
        if (n_waiting_++ == 0) static_cast<void>(napi_ref_threadsafe_function(env, results_));
        {
            const std::lock_guard lock(mutex_);
            jobs_.push_back(std::move(job));
        }
        wake_.notify_one();
        return promise;
    }

    [[nodiscard]] Model& model() {
        if (closed_ || !model_) throw Refusal("model: expected one that is open, got one that was closed");
        return *model_;
    }
    void cancel(bool cancelled) {
        if (!closed_) model_->cancel(cancelled);
    }
    /// Jobs that wait are refused; the one that computes ends within a layer's time.
    void close() {
        if (closed_) return;
        model_->cancel(true);
        closed_ = true;
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        wake_.notify_one();
    }

    /// The collector of garbage hears of the model's memory.
    void add_memory(napi_env env, std::int64_t n_bytes) {
        std::int64_t all = 0;
        n_bytes_ += n_bytes;
        static_cast<void>(napi_adjust_external_memory(env, n_bytes, &all));
    }

    /// JavaScript and the results' queue each hold the handle.
    static void release(Handle* handle) {
        if (--handle->n_holders_ == 0) delete handle;
    }

private:
    void run() {
        for (std::unique_lock lock(mutex_);;) {
            wake_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
            if (jobs_.empty()) break;
            std::unique_ptr<Job> job = std::move(jobs_.front());
            jobs_.pop_front();
            const bool refused = ends_;
            lock.unlock();
            compute(*job, refused);
            // A queue that is closing, where the program ends, takes nothing, and wants no release.
            if (napi_call_threadsafe_function(results_, job.get(), napi_tsfn_nonblocking) != napi_ok) return;
            static_cast<void>(job.release());
            lock.lock();
        }
        model_.reset();
        if (results_) static_cast<void>(napi_release_threadsafe_function(results_, napi_tsfn_release));
    }

    void compute(Job& job, bool refused) {
        try {
            if (refused) throw Refusal("model: expected one that is open, got one that was closed");
            job.work(*model_);
        } catch (const std::bad_alloc&) {
            job.refusal = "memory: expected room for the result, got none";
        } catch (const std::exception& error) {
            job.refusal = error.what();
        }
    }

    /// In JavaScript's thread, for each result. env is null where the program ends.
    static void settle(napi_env env, napi_value, void* context, void* data) {
        const std::unique_ptr<Job> job(static_cast<Job*>(data));
        if (!env) return;
        auto& handle = *static_cast<Handle*>(context);
        if (--handle.n_waiting_ == 0) static_cast<void>(napi_unref_threadsafe_function(env, handle.results_));
        try {
            if (!job->refusal) return static_cast<void>(napi_resolve_deferred(env, job->promise, job->result(env)));
        } catch (const Thrown&) {
            napi_value error;
            static_cast<void>(napi_get_and_clear_last_exception(env, &error));
            job->refusal = "memory: expected room for the result, got none";
        }
        napi_value line, error;
        if (napi_create_string_utf8(env, job->refusal->data(), job->refusal->size(), &line) == napi_ok &&
            napi_create_error(env, nullptr, line, &error) == napi_ok)
            static_cast<void>(napi_reject_deferred(env, job->promise, error));
    }

    /// In JavaScript's thread: the thread has ended, or the program does, and the thread with it.
    static void ended(napi_env env, void*, void* context) {
        auto* const handle = static_cast<Handle*>(context);
        handle->close();
        handle->thread_.join();
        if (env) handle->add_memory(env, -handle->n_bytes_);
        release(handle);
    }

    // JavaScript's thread's.
    napi_threadsafe_function results_ = nullptr;
    std::uint32_t n_waiting_ = 0, n_holders_ = 2;
    std::int64_t n_bytes_ = 0;  // that the collector knows
    bool closed_ = false;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::unique_ptr<Job>> jobs_;
    bool ends_ = false;
    std::unique_ptr<Model> model_ = std::make_unique<Model>();
    std::thread thread_;
};

// ---- what JavaScript calls -----------------------------------------------------------------------------------------

/// A call's arguments; the first is the handle.
struct Call {
    napi_env env;
    napi_value args[8];

    [[nodiscard]] Handle& handle() const {
        void* handle = nullptr;
        check(napi_get_value_external(env, args[0], &handle));
        return *static_cast<Handle*>(handle);
    }
    /// work(model) on the model's thread, and result(env, what it returned) in this one.
    template<class Work, class Result>
    [[nodiscard]] napi_value later(Work work, Result result) const {
        return handle().add(env, std::make_unique<JobOf<Work, Result>>(std::move(work), std::move(result)));
    }
};

const auto as_js = [](napi_env env, const auto& made) { return js(env, made); };

napi_value make(const Call& call) {
    auto* const handle = new Handle(call.env, js(call.env, std::string_view("fovea")));
    napi_value value;
    check(napi_create_external(
        call.env, handle,
        [](napi_env, void* data, void*) {
            static_cast<Handle*>(data)->close();
            Handle::release(static_cast<Handle*>(data));
        },
        nullptr, &value));
    return value;
}

napi_value facts_of(napi_env env, const Model& model) {
    const fovea_info& info = model.info();
    napi_value facts = new_object(env);
    const std::pair<const char*, double> numbers[] = {{"kind", info.kind},
                                                      {"fingerprint", info.fingerprint},
                                                      {"nLayers", info.n_layers},
                                                      {"dModel", info.d_model},
                                                      {"vocabSize", info.vocab_size},
                                                      {"maxPositions", info.max_positions},
                                                      {"nHeads", info.n_heads},
                                                      {"nKvHeads", info.n_kv_heads},
                                                      {"headDim", info.head_dim},
                                                      {"pools", info.pools},
                                                      {"hasTokenizer", info.has_tokenizer},
                                                      {"fileBytes", static_cast<double>(info.file_bytes)},
                                                      {"resultWidth", info.result_width},
                                                      {"numericsVersion", fovea_numerics_version()},
                                                      {"bos", info.bos},
                                                      {"contextLength", model.max_positions()},
                                                      {"arenaBytes", static_cast<double>(model.arena_bytes())}};
    for (const auto& [name, value] : numbers) set(env, facts, name, js(env, value));
    set(env, facts, "name", js(env, info.name));
    set(env, facts, "architecture", js(env, info.architecture));
    set(env, facts, "promptSuffix", js(env, info.prompt_suffix));
    set(env, facts, "chatTemplate", js(env, info.chat_template));
    set(env, facts, "isa", js(env, std::string_view(model.isa())));
    set(env, facts, "version", js(env, std::string_view(fovea_version())));
    return facts;
}

napi_value open(const Call& call) {
    napi_env env = call.env;
    const napi_value given = call.args[1];
    LoadOptions options;
    options.path = text_of(env, get(env, given, "path"));
    options.isa = text_of(env, get(env, given, "isa"));
    options.verify = bool_of(env, get(env, given, "verify"));
    options.max_positions = count_of(env, get(env, given, "maxPositions"));
    options.max_batch = count_of(env, get(env, given, "batch"));
    options.kv_type = count_of(env, get(env, given, "cacheType"));
    options.n_threads = count_of(env, get(env, given, "threads"));
    return call.later(
        [options = std::move(options)](Model& model) {
            model.open(options);
            return &model;
        },
        [&handle = call.handle()](napi_env js_env, const Model* model) {
            handle.add_memory(js_env, static_cast<std::int64_t>(model->arena_bytes()));
            return facts_of(js_env, *model);
        });
}

napi_value start(const Call& call) {
    napi_env env = call.env;
    const napi_value given = call.args[1];
    TextOptions options;
    options.tokens = numbers_of<std::uint32_t>(env, get(env, given, "tokens"));
    options.max_tokens = count_of(env, get(env, given, "maxTokens"));
    options.show_special = bool_of(env, get(env, given, "showSpecial"));
    options.schema = text_of(env, get(env, given, "schema"));
    for_each(env, get(env, given, "stops"), [&](napi_value stop) { options.stops.push_back(text_of(env, stop)); });
    const auto form = numbers_of<std::uint8_t>(env, get(env, given, "form"));
    options.form.resize(form.size());
    if (!form.empty()) std::memcpy(options.form.data(), form.data(), form.size());
    const napi_value sampling = get(env, given, "sampling");
    napi_value names;
    check(napi_get_property_names(env, sampling, &names));
    for_each(env, names, [&](napi_value name) {
        const std::string field = text_of(env, name);
        if (set_sampler_option(&options.sampler, &options.more, field.c_str(),
                               number_of(env, get(env, sampling, field.c_str()))))
            throw Refusal(field + ": expected an option of generate, got another name");
    });
    return call.later(
        [options = std::move(options)](Model& model) mutable {
            model.start(std::move(options));
            return 0.0;
        },
        as_js);
}

napi_value advance(const Call& call) {
    return call.later([](Model& model) { return model.advance(); },
                      [](napi_env env, const std::vector<Piece>& pieces) {
                          napi_value array;
                          check(napi_create_array_with_length(env, pieces.size(), &array));
                          for (std::uint32_t i = 0; i < pieces.size(); ++i) {
                              napi_value piece = new_object(env);
                              set(env, piece, "text", js(env, std::string_view(pieces[i].text)));
                              set(env, piece, "tokens", js(env, pieces[i].tokens));
                              set(env, piece, "finish", js(env, pieces[i].finish));
                              check(napi_set_element(env, array, i, piece));
                          }
                          return array;
                      });
}

napi_value embed(const Call& call) {
    return call.later(
        [tokens = numbers_of<std::uint32_t>(call.env, call.args[1])](Model& model) { return model.embed(tokens); },
        as_js);
}

napi_value logits(const Call& call) {
    return call.later([tokens = numbers_of<std::uint32_t>(call.env, call.args[1]),
                       piece = count_of(call.env, call.args[2])](Model& model) { return model.logits(tokens, piece); },
                      as_js);
}

napi_value attention(const Call& call) {
    return call.later(
        [tokens = numbers_of<std::uint32_t>(call.env, call.args[1]), layer = count_of(call.env, call.args[2]),
         per_head = bool_of(call.env, call.args[3])](Model& model) { return model.attention(tokens, layer, per_head); },
        [](napi_env env, const Attention& made) {
            napi_value result = new_object(env);
            set(env, result, "heads", js(env, made.n_heads));
            set(env, result, "weights", js(env, made.weights));
            return result;
        });
}

napi_value render(const Call& call) {
    return call.later(
        [messages = text_of(call.env, call.args[1]), tools = text_of(call.env, call.args[2]),
         extra = text_of(call.env, call.args[3])](Model& model) { return model.render(messages, tools, extra); },
        [](napi_env env, const std::string& text) { return js(env, std::string_view(text)); });
}

napi_value tokenize(const Call& call) {
    const std::string text = text_of(call.env, call.args[1]);
    return js(call.env, call.handle().model().tokenize(text, static_cast<int>(count_of(call.env, call.args[2]))));
}

napi_value decode(const Call& call) {
    const auto tokens = numbers_of<std::uint32_t>(call.env, call.args[1]);
    return js(call.env, std::string_view(call.handle().model().decode(tokens)));
}

napi_value cancel(const Call& call) {
    call.handle().cancel(bool_of(call.env, call.args[1]));
    return nullptr;
}

napi_value close(const Call& call) {
    call.handle().close();
    return nullptr;
}

template<napi_value (*function)(const Call&)>
napi_value called(napi_env env, napi_callback_info info) {
    Call call{env, {}};
    size_t n = std::size(call.args);
    if (napi_get_cb_info(env, info, &n, call.args, nullptr, nullptr) != napi_ok) return nullptr;
    try {
        return function(call);
    } catch (const Thrown&) {
        bool is_under_way = false;
        static_cast<void>(napi_is_exception_pending(env, &is_under_way));
        if (!is_under_way)
            static_cast<void>(napi_throw_type_error(
                env, nullptr, "options: expected values as fovea.d.mts has them, got another type"));
    } catch (const std::exception& error) {
        static_cast<void>(napi_throw_error(env, nullptr, error.what()));
    }
    return nullptr;
}

}  // namespace
}  // namespace fovea::node

NAPI_MODULE_INIT() {
    using namespace fovea::node;
    const std::pair<const char*, napi_callback> functions[] = {
        {"make", called<make>},           {"open", called<open>},     {"start", called<start>},
        {"advance", called<advance>},     {"embed", called<embed>},   {"logits", called<logits>},
        {"attention", called<attention>}, {"render", called<render>}, {"tokenize", called<tokenize>},
        {"decode", called<decode>},       {"cancel", called<cancel>}, {"close", called<close>}};
    for (const auto& [name, function] : functions) {
        napi_value value;
        if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value) != napi_ok ||
            napi_set_named_property(env, exports, name, value) != napi_ok)
            return nullptr;
    }
    return exports;
}
