// Shows that nothing is allocated and the operating system is not asked for anything from the first forward pass on:
// tokenizing, computing with the given number of threads, sampling, turning ids into text, rewinding, saving.
//   fovea_no_alloc N_THREADS [openmp]
// The C library's allocator is replaced by one that counts. System calls are forbidden to all threads by a filter that
// lets through only what threads need to wait for each other. The run proves its own watch: it ends with a forbidden
// call, and passes only if that is caught.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "fovea/executors.h"
#include "fovea/fovea.h"
#include "fovea/generator.h"
#include "fovea/host/arena.h"
#include "fovea/host/opened.h"
#include "fovea/host/runtime.h"
#include "fovea/sampler.h"
#include "fovea/tokenizer.h"
#include "tests/programs/hear_run.h"
#include "tests/support/attend_cases.h"
#include "tests/support/encoder_models.h"
#include "tests/support/small_models.h"
#include "tools/options/opened.h"

// ---- the allocator -------------------------------------------------------------------------------------------------

namespace {
std::atomic<bool> counting{false};
std::atomic<long> n_calls{0};

void count() {
    if (counting.load(std::memory_order_relaxed)) ++n_calls;
}
}  // namespace

extern "C" {
// glibc's own names for what it exports as malloc and so on.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t n) { return count(), __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return count(), __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return count(), __libc_realloc(p, n); }
void* memalign(size_t alignment, size_t n) { return count(), __libc_memalign(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return count(), __libc_memalign(alignment, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
    count();
    *p = __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}
void free(void* p) { return count(), __libc_free(p); }
}

namespace {

using namespace fovea;
using namespace fovea::testing;

constexpr LogitBias kBiases[] = {{1, 0.5f}, {2, -1.0f}};

// ---- system calls --------------------------------------------------------------------------------------------------

constexpr int kReport = 100;              // our own file descriptor for the result, the one thing that may be written
constexpr long kForbidden = SYS_getppid;  // what the run ends with
std::atomic<bool> finished{false};

void report(const std::string& line) {
    if (write(kReport, line.data(), line.size()) < 0) _exit(1);
}

/// Runs in the thread that made a forbidden call, instead of the call.
void on_forbidden(int, siginfo_t* info, void*) {
    char line[] = "no_alloc: system call      \n";
    for (int n = info->si_syscall, i = sizeof line - 3; n; n /= 10) line[i--] = static_cast<char>('0' + n % 10);
    const bool expected = finished && info->si_syscall == kForbidden;
    if (!expected && write(kReport, line, sizeof line - 1) < 0) _exit(1);
    _exit(expected ? 0 : 1);
}

/// Forbids all threads every call but those with which they wait, leave a CPU that another member has, tell the time (where the
/// kernel has no faster way), end, and report. False where the kernel has no such filters.
bool forbid_system_calls() {
    struct sigaction action {};
    action.sa_sigaction = on_forbidden;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);

    constexpr auto kNumber = static_cast<__u32>(offsetof(seccomp_data, nr));
    constexpr auto kFirstArgument = static_cast<__u32>(offsetof(seccomp_data, args));
    std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber)};
    for (const int allowed : {SYS_futex, SYS_sched_yield, SYS_getcpu, SYS_sched_getaffinity, SYS_sched_setaffinity,
                              SYS_clock_gettime, SYS_exit_group, SYS_rt_sigreturn}) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(allowed), 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3));
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFirstArgument));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kReport, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));

    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// ---- what is watched -----------------------------------------------------------------------------------------------

const char* problem = nullptr;

void expect(bool ok, const char* what) {
    if (!ok && !problem) problem = what;
}

/// From text to text with the demo model, with every option of the sampler.
class TextRun {
public:
    TextRun(std::uint32_t n_threads, const SessionOptions& how)
        : opened_(open_path_or_demo("")),
          running_(start_session(opened_, {.n_threads = n_threads}, how)),
          logits_(opened_.model.config().decoder.vocab_size),
          candidates_(logits_.size()),
          recent_(kNew),
          scratch_(tokenize_scratch_bytes(opened_.tokenizer, kText.size())),
          tokens_(max_tokens(opened_.tokenizer, kText.size())),
          piece_(max_piece_bytes(opened_.tokenizer)),
          saved_(running_.plan.arena_bytes),
          draft_(start_session(opened_, {}, how)) {
        GeneratorPlan plan;
        expect(make_generator_plan(opened_.model, opened_.tokenizer, {.max_proposed = 4}, plan).ok(), "plan");
        arena_.resize(plan.arena_bytes);
        expect(
            make_generator(opened_.model, opened_.tokenizer, running_->cache(), plan.limits, arena_, generator_).ok(),
            "make_generator");
    }

    void go() {
        std::size_t n = 0;
        expect(tokenize(opened_.tokenizer, kText, {}, scratch_, tokens_, n).ok() && n > 0, "encode");
        expect(forward(*running_, std::span(tokens_).first(n), logits_).ok(), "forward, the prompt");
        for (const SamplerOptions& options :
             {SamplerOptions{}, SamplerOptions{.temperature = 0.9f, .seed = 1},
              SamplerOptions{.temperature = 1, .top_k = 20, .top_p = 0.9f, .min_p = 0.01f, .repeat_penalty = 1.1f},
              SamplerOptions{.temperature = 1, .frequency_penalty = 0.5f, .presence_penalty = 0.5f, .bias = kBiases}}) {
            expect(rewind(*running_, static_cast<std::uint32_t>(n)).ok(), "rewind");
            Sampler sampler;
            expect(make_sampler(options, sampler).ok(), "make_sampler");
            Decoder decoder;
            for (std::size_t i = 0; i < kNew; ++i) {
                const std::span<const Token> recent(recent_.data(), i);
                const auto pos = static_cast<std::uint32_t>(n + i);
                expect(sample(sampler, pos, logits_, recent, candidates_, recent_[i]).ok(), "sample");
                (void)decode(opened_.tokenizer, decoder, recent_[i], true, piece_);
                expect(forward(*running_, {&recent_[i], 1}, logits_).ok(), "forward, one token");
            }
            (void)finish(decoder, piece_);
        }
        std::size_t written = 0;
        expect(save_session(*running_, saved_, written).ok(), "save_session");
        expect(restore_session(*running_, std::span(saved_).first(written)).ok(), "restore_session");
        for (const bool drafted : {false, true}) write(std::span(tokens_).first(n), drafted);
    }

private:
    /// A text by a generator, with all that it can do.
    void write(std::span<const Token> prompt, bool drafted) {
        static constexpr std::string_view kStop[] = {"never", "}}}"};
        GenerateOptions options{.sampler = {.temperature = 0.5f}, .n_new = 20, .stop = kStop};
        options.filter.allow = [](void*, std::span<const Token>, std::span<std::uint32_t> mask) { mask[0] &= ~1u; };
        options.speculation = {.n_proposed = 4, .always = true};
        if (drafted) options.speculation.draft = {draft_->workspace(), draft_->cache()};
        Workspace workspace = running_->workspace();
        expect(start(generator_, prompt, options).ok(), "start");
        for (Piece piece; piece.finish == FinishReason::none && !problem;)
            expect(generate(generator_, workspace, piece).ok(), "generate");
    }

    static constexpr std::string_view kText = "switch off the light in the kitchen and set a timer for ten minutes";
    static constexpr std::size_t kNew = 12;
    host::Opened opened_;
    host::Runtime<Session> running_;
    std::vector<float> logits_;
    std::vector<Candidate> candidates_;
    std::vector<Token> recent_;
    AlignedBytes scratch_;
    std::vector<Token> tokens_;
    std::vector<char> piece_;
    std::vector<std::byte> saved_;
    host::Runtime<Session> draft_;
    AlignedBytes arena_;
    Generator generator_;
};

/// A model large enough that single tokens go to all threads too; one of each matrix and cache type.
class LargeRun {
public:
    LargeRun(Type type, Type kv_type, std::uint32_t n_threads, const SessionOptions& how)
        : model_(llama_config(2, 512, 8, 4, 64, 1408, 300), type),
          session_(model_.model, {.max_batch = 32, .n_threads = n_threads, .kv_type = kv_type}, how),
          tokens_(some_tokens(80, model_.model.config().decoder.vocab_size)),
          logits_(model_.model.config().decoder.vocab_size) {}

    void go() {
        const std::span<const Token> tokens = tokens_;
        expect(forward(session_.session, tokens.first(70), logits_).ok(), "forward, batches");
        for (std::size_t i = 70; i < 80; ++i)
            expect(forward(session_.session, tokens.subspan(i, 1), logits_).ok(), "forward, one token to all threads");
    }

private:
    SmallModel model_;
    SmallSession session_;
    std::vector<Token> tokens_;
    std::vector<float> logits_;
};

/// Heads alone under masks of numbers, padding and order, weights asked for.
class AttendRun {
public:
    AttendRun(std::uint32_t n_threads, const SessionOptions& how)
        : arrays_({.causal = true, .adds = true, .pads = true}),
          model_(heads()),
          session_(model_,
                   {.max_batch = kCase.n_sequences * kCase.n_queries,
                    .n_threads = n_threads,
                    .max_sequences = kCase.n_sequences,
                    .max_key_rows = kCase.n_sequences * kCase.n_keys},
                   how),
          out_(arrays_.n_out()),
          weights_(arrays_.n_weights()) {}

    void go() {
        const AttentionWeights asked{
            .per_head = true, .n_queries = kCase.n_queries, .n_keys = kCase.n_keys, .out = weights_};
        expect(capture_attention(session_.session, asked).ok(), "capture_attention");
        expect(attend(session_.session, arrays_.input(), out_).ok(), "attend");
    }

private:
    static constexpr Case kCase{};
    static Model heads() {
        Model model;
        expect(attention_model({.n_heads = kCase.n_heads,
                                .n_kv_heads = kCase.n_kv_heads,
                                .head_dim = kCase.head_dim,
                                .value_head_dim = kCase.value_head_dim},
                               model)
                   .ok(),
               "attention_model");
        return model;
    }
    Arrays arrays_;
    Model model_;
    SmallSession session_;
    std::vector<float> out_, weights_;
};

/// An encoder that feeds a decoder, two sequences of each. Where it hears, frames of its own width become as many rows.
class EncodeRun {
public:
    EncodeRun(bool hears, Type type, std::uint32_t n_threads, const SessionOptions& how)
        : hears_(hears),
          model_(config(hears), type),
          session_(model_.model, {.max_batch = kRows, .n_threads = n_threads, .max_sequences = 2}, how),
          rows_(some_floats(kRows * kWidth, 1)),
          frames_(some_floats(kFrames * kMels, 2)),
          out_(kRows * kWidth) {}

    void go() {
        const Sequences side{.vectors = rows_, .lengths = kLengths, .masks = {.causal = true}};
        const Sequences heard{.vectors = frames_, .lengths = kFrameLengths};
        expect(encode(session_.session, {.source = hears_ ? heard : side, .target = side}, out_).ok(), "encode");
    }

private:
    static Config config(bool hears) {
        Config config = both_config(NormPlace::pre);
        if (hears) config.encoder.sound = sound_config(kMels, kFrames).encoder.sound;
        return config;
    }
    static constexpr std::uint32_t kLengths[] = {50, 31}, kRows = 81, kWidth = 40;
    static constexpr std::uint32_t kFrameLengths[] = {99, 62}, kFrames = 161, kMels = 11;
    bool hears_;
    SmallModel model_;
    SmallSession session_;
    std::vector<float> rows_, frames_, out_;
};

/// Sequences of one pass: a prompt beside single tokens, forks that copy a page, saved and restored caches.
class StepsRun {
public:
    StepsRun(std::uint32_t n_threads, const SessionOptions& how)
        : model_(llama_config(2, 48, 6, 2, 8, 88, 300), Type::q8),
          tokens_(some_tokens(200, model_.model.config().decoder.vocab_size)),
          logits_(model_.model.config().decoder.vocab_size),
          saved_(1 << 20) {
        const Limits limits{.max_batch = 64, .n_threads = n_threads, .max_sequences = 4};
        Plan plan;
        PoolPlan caches;
        expect(make_workspace_plan(model_.model.config(), limits, plan).ok(), "make_workspace_plan");
        expect(make_pool_plan(model_.model.config(), {.max_sequences = 4}, caches).ok(), "make_pool_plan");
        arena_.resize(plan.arena_bytes);
        pages_.resize(caches.arena_bytes);
        expect(make_workspace(model_.model, limits, arena_, workspace_, how).ok(), "make_workspace");
        expect(make_pool(model_.model, caches.limits, pages_, pool_).ok(), "make_pool");
    }

    void go() {
        const std::span<const Token> tokens = tokens_;
        Cache a, b, c;
        std::size_t n = 0;
        expect(make_cache(pool_, a).ok() && make_cache(pool_, b).ok(), "make_cache");
        const Step prompts[] = {{a, tokens.first(150), logits_}, {b, tokens.first(1), {}}};
        expect(forward(workspace_, prompts).ok(), "forward, a prompt beside a token");
        expect(fork_cache(a, c).ok(), "fork_cache");
        const Step forks[] = {{a, tokens.first(1), logits_}, {b, tokens.first(3), {}}, {c, tokens.subspan(7, 2), {}}};
        expect(forward(workspace_, forks).ok(), "forward, forks");
        expect(save_cache(a, saved_, n).ok(), "save_cache");
        expect(restore_cache(b, std::span(saved_).first(n)).ok(), "restore_cache");
        expect(rewind(c, 5).ok() && end_cache(a).ok() && end_cache(b).ok() && end_cache(c).ok(), "end_cache");
    }

private:
    SmallModel model_;
    AlignedBytes arena_, pages_;
    Workspace workspace_;
    CachePool pool_;
    std::vector<Token> tokens_;
    std::vector<float> logits_;
    std::vector<std::byte> saved_;
};

/// A text of the demo model by the C interface, with all that its generators can do.
class CRun {
public:
    CRun(std::uint32_t n_threads, const SessionOptions& how) {
        const std::span<const std::byte> file = demo_model_bytes();
        expect(fovea_open_model(file.data(), file.size(), 0, memory_, sizeof memory_, &model_).code == FOVEA_OK,
               "open");
        fovea_limits limits{};
        limits.struct_size = sizeof limits;
        limits.max_text_bytes = 64;
        limits.n_threads = n_threads;
        limits.isa = how.isa;
        limits.run = how.executor.run;
        fovea_plan plan{};
        plan.struct_size = sizeof plan;
        expect(fovea_plan_session(model_, &limits, &plan).code == FOVEA_OK, "fovea_plan_session");
        arena_ = Arena(plan.arena_bytes);
        expect(fovea_make_session_of(model_, &limits, arena_.bytes().data(), arena_.size(), &session_).code == FOVEA_OK,
               "fovea_make_session_of");
        const fovea_cache cache = fovea_session_cache(session_);
        const fovea_generator_limits most{sizeof most, 0, 0, 4};
        fovea_generator_plan texts{};
        texts.struct_size = sizeof texts;
        expect(fovea_plan_generator(model_, &most, &texts).code == FOVEA_OK, "fovea_plan_generator");
        texts_ = Arena(texts.arena_bytes);
        expect(fovea_make_generator(model_, &cache, &most, texts_.bytes().data(), texts_.size(), &generator_).code ==
                   FOVEA_OK,
               "fovea_make_generator");
    }

    void go() {
        static constexpr std::string_view kText = "turn on the reading lamp";
        static constexpr fovea_text kStop[] = {{"never", 5}, {"}}}", 3}};
        std::uint32_t tokens[64];
        std::size_t n = 0;
        expect(fovea_tokenize(session_, kText.data(), kText.size(), 0, tokens, 64, &n).code == FOVEA_OK,
               "fovea_tokenize");
        fovea_token_filter filter{};
        filter.struct_size = sizeof filter;
        filter.allow = [](void*, const std::uint32_t*, std::size_t, std::uint32_t* mask, std::size_t) { *mask &= ~1u; };
        fovea_speculation speculation{};
        speculation.struct_size = sizeof speculation;
        speculation.n_proposed = 4;
        speculation.always = 1;
        fovea_generate_options options{};
        options.struct_size = sizeof options;
        options.n_new = 20;
        options.filter = &filter;
        options.speculation = &speculation;
        options.stop = kStop;
        options.n_stop = 2;
        expect(fovea_start(generator_, tokens, n, &options).code == FOVEA_OK, "fovea_start");
        fovea_piece piece{};
        piece.struct_size = sizeof piece;
        while (piece.finish == FOVEA_FINISH_NONE && !problem)
            expect(fovea_generate(generator_, fovea_session_workspace(session_), &piece).code == FOVEA_OK,
                   "fovea_generate");
    }

private:
    alignas(8) unsigned char memory_[FOVEA_MODEL_BYTES];
    struct fovea_model* model_ = nullptr;
    Arena arena_, texts_;
    fovea_session* session_ = nullptr;
    fovea_generator* generator_ = nullptr;
};

int run(std::uint32_t n_threads, const Executor& executor) {
    std::deque<CRun> texts_in_c;
    std::deque<StepsRun> steps;
    std::deque<TextRun> text;
    std::deque<LargeRun> large;
    std::deque<AttendRun> heads;
    std::deque<EncodeRun> stacks;
    std::deque<HearRun> hearing;
    for (const char* isa : isa_names()) {
        const SessionOptions how{.isa = isa, .executor = executor};
        text.emplace_back(n_threads, how);
        texts_in_c.emplace_back(n_threads, how);
        heads.emplace_back(n_threads, how);
        steps.emplace_back(n_threads, how);
        for (const bool hears : {false, true})
            for (const Type type : {Type::f32, Type::q8}) stacks.emplace_back(hears, type, n_threads, how);
        for (const Type type : {Type::f32, Type::q8}) hearing.emplace_back(type, n_threads, how);
        large.emplace_back(Type::f32, Type::f32, n_threads, how);
        large.emplace_back(Type::f16, Type::f16, n_threads, how);
        large.emplace_back(Type::q8, Type::q4, n_threads, how);
        for (const Type type : {Type::bf16, Type::q8, Type::q4, Type::q8_128})
            large.emplace_back(type, Type::f32, n_threads, how);
        // Teams of two sizes in turn, which OpenMP starts threads for.
        if (n_threads > 2 && !executor.run) large.emplace_back(Type::f32, Type::f32, n_threads - 1, how);
    }
    if (dup2(STDERR_FILENO, kReport) < 0) return 1;

    // The counter itself first.
    counting = true;
    void* volatile p = std::malloc(1);
    std::free(p);
    const long own = n_calls.exchange(0);
    counting = false;
    if (own != 2) return report("no_alloc: the allocator is not watched\n"), 1;
    if (!forbid_system_calls()) return report("no_alloc: skipped, this kernel has no system call filters\n"), 77;

    counting = true;
    for (TextRun& r : text) r.go();
    for (CRun& r : texts_in_c) r.go();
    for (LargeRun& r : large) r.go();
    for (AttendRun& r : heads) r.go();
    for (EncodeRun& r : stacks) r.go();
    for (HearRun& r : hearing) expect(r.go(), "sound");
    for (StepsRun& r : steps) r.go();
    counting = false;

    if (problem) return report(std::string("no_alloc: failed: ") + problem + "\n"), 1;
    if (n_calls) return report("no_alloc: expected 0 calls of the allocator, got " + std::to_string(n_calls) + "\n"), 1;
    report("no_alloc: 0 calls of the allocator, 0 system calls but for waiting, " + std::to_string(n_threads) +
           " threads\n");
    finished = true;
    syscall(kForbidden);
    return report("no_alloc: system calls are not watched\n"), 1;
}

}  // namespace

int main(int argc, char** argv) {
    const long n_threads = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 0;
    if (n_threads < 1 || n_threads > 64) return std::fprintf(stderr, "usage: fovea_no_alloc N_THREADS [openmp]\n"), 2;
    const int result = run(static_cast<std::uint32_t>(n_threads), argc > 2 ? openmp_executor() : kOwnThreads);
    _exit(result);  // exit's own clean-up is not what is watched
}
