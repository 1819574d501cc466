// Texts of recordings: each has a thread of its own that decodes it and decides what is written, and asks for windows and
// tokens; the scheduler's thread computes what all of them have asked for by its turn, texts in one pass.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

#include "fovea/host/sound_file.h"
#include "host/base/error.h"
#include "host/speech/speech_engine.h"
#include "serve/jobs/worker.h"

namespace fovea::serve {
namespace {

constexpr std::uint32_t kRecordings = 4;  // at a time, unless the options say otherwise
constexpr std::uint64_t kDecoding =
    1u << 30;  // bytes while one recording is decoded: samples, twice while they grow, filters

/// A recording that is under way. What the two threads share is guarded by the worker's mutex.
struct SpeechPlace {
    JobPtr job;  ///< null: the place is free. The scheduler's thread alone
    std::thread thread;

    // The call that the loop waits for.
    bool asks = false;
    std::span<const float> frames;                ///< a window to be heard; or, where there is none,
    std::optional<std::size_t> n_kept;            ///< of its text, where it is to be shorter,
    std::span<const Token> tokens;                ///< before these go on; or
    const SpeechModel::EachHead* each = nullptr;  ///< whose attention is asked for
    std::vector<float> logits;
    Status status;

    std::vector<Event> events;       ///< for the client
    bool finished = false;           ///< the loop has ended
    std::atomic<bool> stops{false};  ///< it is to end soon
};

class SpeechWorker final : public Worker {
public:
    SpeechWorker(const host::Opened& served, const WorkerOptions& options, ModelMetrics& metrics)
        : Worker(options.queue_capacity), served_(served), options_(options), metrics_(metrics) {
        need_speech(served);
        if (!served.adapters.empty())
            throw host::Error(served.name + ": adapter: expected a model for text or vectors, got one for speech");
        const Config& config = served.model.config();
        const std::uint32_t n_positions = (config.encoder.sound.n_frames + 1) / 2 + config.decoder.max_positions;
        const std::uint32_t n_fit = options.n_positions ? std::max(options.n_positions / n_positions, 1u) : kRecordings;
        places_.resize(std::min(options.n_sequences, n_fit));
    }

    void take_memory() override {}  // begin does: the workspace is made where its memory is taken
    void begin() override {
        workspace_.emplace(served_, how());
        for (SpeechPlace& place : places_) place.logits.resize(served_.model.config().decoder.vocab_size);
    }
    [[nodiscard]] bool turn() override;
    void fail_all(const Failure& failure) override;
    [[nodiscard]] std::uint32_t context() const override { return served_.model.config().decoder.max_positions; }
    [[nodiscard]] std::uint64_t memory_bytes() const override {
        return SpeechWorkspace::plan(served_, how()).n_bytes();
    }
    [[nodiscard]] std::uint64_t later_bytes() const override {
        const Sound& sound = served_.model.config().encoder.sound;
        const std::uint64_t n_frames = std::uint64_t{kMostRecordingSeconds} * sound.sample_rate / sound.hop_length;
        return places_.size() * n_frames * sound.n_mels * sizeof(float) + kDecoding;
    }
    [[nodiscard]] Work work() const override { return Work::speech; }

private:
    friend class Loop;
    [[nodiscard]] SpeechWorkspace::Options how() const {
        return {.n_threads = options_.n_threads,
                .isa = options_.isa,
                .kv_type = options_.kv_type,
                .n_recordings = static_cast<std::uint32_t>(places_.size()),
                .words = true};
    }
    void start(SpeechPlace& place, const JobPtr& job);
    void run(SpeechPlace& place) noexcept;
    [[nodiscard]] RecordingFrames frames_of(const SpeechPlace& place, double& seconds);
    void give_up();
    void stop(SpeechPlace& place, const Failure& failure) {
        place.job->fail(failure);
        const std::lock_guard lock(mutex_);
        place.stops = true;
        answered_.notify_all();
    }
    bool hand_out(SpeechPlace& place);
    [[nodiscard]] bool compute();
    static void check(const SpeechPlace& place) {
        if (place.stops || place.job->cancelled) throw SpeechCancelled{};
    }

    const host::Opened& served_;
    const WorkerOptions options_;
    ModelMetrics& metrics_;
    std::optional<SpeechWorkspace> workspace_;
    std::deque<SpeechPlace> places_;
    std::mutex mutex_;
    std::condition_variable answered_;
    std::timed_mutex decoding_;  // one recording at a time is samples
};

/// What a recording's loop has for a model: it asks, and waits until the scheduler's thread has computed.
class Loop final : public SpeechModel {
public:
    Loop(SpeechWorker& worker, SpeechPlace& place) : worker_(worker), place_(place) {
        worker.workspace_->describe(*this);
    }

    void hear(std::span<const float> frames) override {
        n_kept_.reset();
        ask(frames, {});
    }
    void rewind(std::size_t n_tokens) override { n_kept_ = n_tokens; }
    std::span<const float> read(std::span<const Token> tokens) override {
        ask({}, tokens);
        n_kept_.reset();
        return place_.logits;
    }
    void attend(std::span<const Token> tokens, const EachHead& each) override {
        n_kept_.reset();
        ask({}, tokens, &each);
    }
    std::string text_of(std::span<const Token> tokens) override { return worker_.served_.text(tokens); }

private:
    void ask(std::span<const float> frames, std::span<const Token> tokens, const EachHead* each = nullptr) {
        std::unique_lock lock(worker_.mutex_);
        SpeechWorker::check(place_);
        place_.frames = frames, place_.tokens = tokens, place_.n_kept = n_kept_, place_.each = each;
        place_.asks = true;
        worker_.wake();
        worker_.answered_.wait(lock, [&] { return !place_.asks || place_.stops; });
        place_.asks = false;
        SpeechWorker::check(place_);
        require(place_.status, worker_.served_.name);
    }

    SpeechWorker& worker_;
    SpeechPlace& place_;
    std::optional<std::size_t> n_kept_;
};

/// Decoded where no other recording is. What is wrong with the file is the client's fault.
RecordingFrames SpeechWorker::frames_of(const SpeechPlace& place, double& seconds) {
    std::unique_lock lock(decoding_, std::defer_lock);
    while (!lock.try_lock_for(std::chrono::milliseconds(50))) check(place);
    Recording& recording = *place.job->recording;
    const std::uint32_t rate = served_.model.config().encoder.sound.sample_rate;
    const SoundBounds bounds{.most_seconds = kMostRecordingSeconds, .between = [&] { check(place); }};
    const std::vector<float> samples = decode_sound(std::as_bytes(std::span(recording.bytes)), "file", rate, bounds);
    std::string().swap(recording.bytes);
    recording.taken = nullptr;
    seconds = static_cast<double>(samples.size()) / rate;
    check(place);
    return recording_frames(served_.model, samples, "file");
}

void SpeechWorker::run(SpeechPlace& place) noexcept {
    Event last{.finish = FinishReason::end_token, .ended = true};
    try {
        RecordingFrames frames;
        try {
            frames = frames_of(place, last.seconds);
        } catch (const host::Error& refusal) {
            last.failure = {400, refusal.what()};
        }
        if (!last.failure.status) {
            Loop model(*this, place);
            SpeechCalls calls;
            calls.segment = [&](const SpeechSegment& segment) {
                const std::lock_guard lock(mutex_);
                place.events.push_back({.text = segment.text, .segments = {segment}});
                wake();
            };
            const Recording& recording = *place.job->recording;
            last.language = transcribe(model, workspace_->tokens(), frames.view(), recording.options, calls).language;
        }
    } catch (const SpeechCancelled&) {  // nobody waits for it, or it has been told
    } catch (const std::bad_alloc&) {
        last.failure = {503, "server: out of memory"};
    } catch (const std::exception& error) {
        last.failure = {500, error.what()};
    }
    const std::lock_guard lock(mutex_);
    place.events.push_back(std::move(last));
    place.finished = true;
    wake();
}

void SpeechWorker::start(SpeechPlace& place, const JobPtr& job) {
    place.job = job;
    place.asks = place.finished = place.stops = false;
    queue.hold(job->user);
    try {
        place.thread = std::thread([this, &place] { run(place); });
    } catch (const std::system_error&) {
        place.finished = true;
        job->fail({503, "server: out of threads"});
    }
}

/// Ends what nobody waits for, and what has had its time.
void SpeechWorker::give_up() {
    const Clock::time_point now = Clock::now();
    for (const JobPtr& job : queue.take_ended(now)) job->fail(why_ended(*job, now));
    for (SpeechPlace& place : places_) {
        if (place.job && place.job->is_over(now)) stop(place, kLate);
    }
}

/// What a loop has written since, and its place where it has ended. False: nothing.
bool SpeechWorker::hand_out(SpeechPlace& place) {
    if (!place.job) return false;
    const JobPtr job = place.job;
    bool finished = false;
    {
        const std::lock_guard lock(mutex_);
        finished = place.finished;
        if (place.events.empty() && !finished) return false;
        job->events = std::exchange(place.events, {});
    }
    for (const Event& event : job->events)
        for (const SpeechSegment& segment : event.segments) {
            if (!job->n_started++) metrics_.first_token.observe(seconds_since(job->arrived));
            metrics_.n_new_tokens += segment.tokens.size();
        }
    if (job->deliver) job->hand_over();
    job->events.clear();
    if (!finished) return true;
    if (place.thread.joinable()) place.thread.join();
    metrics_.request.observe(seconds_since(job->arrived));
    job->deliver = nullptr;
    queue.release(job->user);
    place.job = nullptr;
    return true;
}

/// One window of one recording, or what one attends to, and the next tokens of all that have asked for them. False: none has asked.
bool SpeechWorker::compute() {
    std::vector<SpeechWorkspace::Reading> readings;
    std::optional<std::size_t> hears;
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < places_.size(); ++i) {
            SpeechPlace& place = places_[i];
            if (!place.job || !place.asks || place.stops) continue;
            if (place.tokens.empty() || place.each)
                hears = hears ? hears : i;
            else
                readings.push_back({i, place.tokens, place.logits});
        }
    }
    if (!hears && readings.empty()) return false;
    std::vector<std::pair<std::size_t, Status>> done;
    if (hears) {
        const SpeechPlace& place = places_[*hears];
        done.emplace_back(*hears, place.each ? workspace_->attend(*hears, place.tokens, *place.each)
                                             : workspace_->hear(*hears, place.frames));
    }
    std::erase_if(readings, [&](const SpeechWorkspace::Reading& r) {
        if (!places_[r.i].n_kept) return false;
        const Status status = workspace_->rewind(r.i, *places_[r.i].n_kept);
        if (!status.ok()) done.emplace_back(r.i, status);
        return !status.ok();
    });
    if (!readings.empty()) {
        const Status status = workspace_->read(readings);
        for (const SpeechWorkspace::Reading& r : readings) done.emplace_back(r.i, status);
    }
    for (const auto& [i, status] : done) {
        const SpeechPlace& place = places_[i];
        const std::size_t n_rows =
            std::max(place.tokens.size(), place.frames.size() / served_.model.config().encoder.sound.n_mels / 2);
        queue.charge(place.job->user, n_rows);
        metrics_.n_rows += n_rows;
    }
    metrics_.n_passes += (hears ? 1 : 0) + (readings.empty() ? 0 : 1);
    const std::lock_guard lock(mutex_);
    for (const auto& [i, status] : done) places_[i].status = status, places_[i].asks = false;
    answered_.notify_all();
    return true;
}

bool SpeechWorker::turn() {
    give_up();
    bool some = false;
    for (SpeechPlace& place : places_) some |= hand_out(place);
    for (SpeechPlace& place : places_) {
        if (place.job) continue;
        const JobPtr job = queue.front();
        if (!job) break;
        queue.pop(job);
        start(place, job);
        some = true;
    }
    metrics_.n_waiting = queue.size();
    metrics_.n_running = static_cast<std::uint64_t>(
        std::count_if(places_.begin(), places_.end(), [](const SpeechPlace& place) { return place.job != nullptr; }));
    return compute() || some;
}

void SpeechWorker::fail_all(const Failure& failure) {
    fail_waiting(failure);
    for (SpeechPlace& place : places_) {
        if (!place.job) continue;
        stop(place, failure);
        if (place.thread.joinable()) place.thread.join();
        (void)hand_out(place);
    }
    metrics_.n_waiting = metrics_.n_running = 0;
}

}  // namespace

std::unique_ptr<Worker> make_speech_worker(const host::Opened& served, const WorkerOptions& options,
                                           ModelMetrics& metrics) {
    return std::make_unique<SpeechWorker>(served, options, metrics);
}

}  // namespace fovea::serve
