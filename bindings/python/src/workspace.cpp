// Many sequences: workspaces, pools, caches and steps as Python has them.
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/module.h"
#include "bindings/python/src/opened.h"
#include "bindings/python/src/session.h"
#include "fovea/encode.h"
#include "fovea/host/runtime.h"
#include "host/model/stacks.h"

namespace fovea::python {
namespace {

PoolLimits pool_limits_of(const nb::dict& named) {
    PoolLimits limits;
    read_kv_type(named, limits.kv_type);
    read_count(named, "max_kv_len", limits.max_kv_len);
    read_count(named, "max_sequences", limits.max_sequences);
    read_count(named, "page_len", limits.page_len);
    read_count(named, "n_pages", limits.n_pages);
    read_count(named, "max_marks", limits.max_marks);
    read_count(named, "n_states", limits.n_states);
    if (named.contains("memory")) limits.memory = nb::cast<bool>(named["memory"]);
    return limits;
}

/// A pool with its bytes. Caches keep it.
class Pool {
public:
    Pool(const ModelHandle& model, const nb::dict& named) : opened(model.get()) {
        const PoolLimits limits = pool_limits_of(named);
        const WithoutGil released;
        pool = start_pool(*opened, limits);
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// Calls `work(pool)` while nobody else has it.
    template<class Work>
    auto with(Work&& work) {
        const WithoutGil released;
        const std::lock_guard lock(mutex);
        end_dropped();
        return work();
    }
    /// Ends a cache that nobody has any more: now, or where the pool is in use, with the next call.
    void drop(Cache cache) noexcept {
        {
            const std::lock_guard lock(dropped_mutex_);
            dropped_.push_back(cache);
        }
        if (const std::unique_lock lock(mutex, std::try_to_lock); lock.owns_lock()) end_dropped();
    }
    void end_dropped() noexcept {
        const std::lock_guard lock(dropped_mutex_);
        for (Cache& cache : dropped_) (void)end_cache(cache);  // one that was closed is refused
        dropped_.clear();
    }

    SharedModel opened;
    host::Runtime<CachePool> pool;
    std::mutex mutex;  ///< whoever reads or writes the pool holds it, with the GIL released

private:
    std::mutex dropped_mutex_;
    std::vector<Cache> dropped_;
};

class PyCache {
public:
    PyCache(std::shared_ptr<Pool> pool, Cache cache) : pool_(std::move(pool)), cache_(cache) {}
    PyCache(const PyCache&) = delete;
    PyCache& operator=(const PyCache&) = delete;
    ~PyCache() { pool_->drop(cache_); }

    [[nodiscard]] std::unique_ptr<PyCache> fork() {
        Cache made;
        require(pool_->with([&] { return fork_cache(cache_, made); }), "cache");
        return std::make_unique<PyCache>(pool_, made);
    }
    std::uint32_t rewind_to(std::uint32_t kv_len) {
        std::uint32_t reached = 0;
        require(pool_->with([&] { return fovea::rewind(cache_, kv_len, &reached); }), "kv_len");
        return reached;
    }
    void mark() {
        require(pool_->with([&] { return fovea::mark(cache_); }), "cache");
    }
    [[nodiscard]] nb::bytes save() {
        std::vector<std::byte> bytes;
        require(pool_->with([&] {
            bytes.resize(cache_bytes(cache_));
            std::size_t written = 0;
            return save_cache(cache_, bytes, written);
        }),
                "cache");
        return nb::bytes(bytes.data(), bytes.size());
    }
    void restore(const nb::bytes& object) {
        const std::span saved(reinterpret_cast<const std::byte*>(object.c_str()), object.size());
        require(pool_->with([&] { return restore_cache(cache_, saved); }), "saved");
    }
    void close() {
        Cache ended = cache_;  // ours stays as it is, so that other threads read it whole; it is refused from here on
        (void)pool_->with([&] { return end_cache(ended); });
    }
    [[nodiscard]] std::uint32_t kv_len() {
        return pool_->with([&] { return cache_.kv_len(); });
    }
    [[nodiscard]] std::uint32_t n_pages() {
        return pool_->with([&] { return cache_.n_pages(); });
    }
    [[nodiscard]] const std::shared_ptr<Pool>& pool() const { return pool_; }
    [[nodiscard]] Cache cache() const { return cache_; }

private:
    std::shared_ptr<Pool> pool_;
    Cache cache_;
};

class PyPool {
public:
    PyPool(const ModelHandle& model, const nb::dict& limits) : pool_(std::make_shared<Pool>(model, limits)) {}

    [[nodiscard]] std::unique_ptr<PyCache> cache() {
        Cache made;
        require(pool_->with([&] { return make_cache(*pool_->pool, made); }), "pool");
        return std::make_unique<PyCache>(pool_, made);
    }
    [[nodiscard]] std::uint32_t n_free_pages() {
        return pool_->with([&] { return pool_->pool->n_free_pages(); });
    }
    [[nodiscard]] std::uint32_t n_free_sequences() {
        return pool_->with([&] { return pool_->pool->n_free_sequences(); });
    }
    [[nodiscard]] const Pool& pool() const { return *pool_; }

private:
    std::shared_ptr<Pool> pool_;
};

class PyWorkspace {
public:
    PyWorkspace(const ModelHandle& model, const nb::dict& named, const std::string& isa) : opened_(model.get()) {
        const Limits limits = limits_of(*opened_, named);
        const WithoutGil released;
        workspace_ = start_workspace(*opened_, limits, {.isa = isa.empty() ? nullptr : isa.c_str()});
        set_cancel(*workspace_, gate_.flag());
    }
    PyWorkspace(const PyWorkspace&) = delete;
    PyWorkspace& operator=(const PyWorkspace&) = delete;

    /// `steps`: tuples of a cache, ids, an array for logits or None, and a cache that cache_memory filled or None.
    void forward(const nb::list& steps);
    /// Fills each cache of a pool for memories with what is made of its source: ids, or an array [n, d_model].
    void cache_memory(const nb::list& memories, const nb::list& sources);
    void cancel() noexcept { gate_.cancel(); }
    [[nodiscard]] std::uint64_t arena_bytes() const { return workspace_.plan.arena_bytes; }

private:
    SharedModel opened_;
    host::Runtime<Workspace> workspace_;
    PassGate gate_;
};

/// What a step reads and writes, kept while it is computed.
struct HeldStep {
    nb::object owner, memory_owner;
    PyCache* cache = nullptr;
    PyCache* memory = nullptr;
    std::vector<Token> ids;
    Output out;
};

/// Every pool of a pass, held in the order of their places, so that two workspaces never wait for one another.
class PoolLocks {
public:
    explicit PoolLocks(std::vector<Pool*> pools) {
        std::sort(pools.begin(), pools.end());
        pools.erase(std::unique(pools.begin(), pools.end()), pools.end());
        for (Pool* pool : pools) {
            locks_.emplace_back(pool->mutex);
            pool->end_dropped();
        }
    }

private:
    std::vector<std::unique_lock<std::mutex>> locks_;
};

HeldStep read_step(nb::handle object, std::uint64_t vocab_size) {
    const auto parts = nb::cast<nb::tuple>(object);
    HeldStep step;
    step.owner = parts[0];
    step.memory_owner = parts[3];
    step.cache = nb::cast<PyCache*>(step.owner);
    step.ids = read_ids(parts[1], "ids");
    if (!step.memory_owner.is_none()) step.memory = nb::cast<PyCache*>(step.memory_owner);
    const nb::object out = parts[2];
    if (out.is_none()) return step;
    nb::ndarray<nb::ro> given;
    const bool all = nb::try_cast(out, given, false) && given.is_valid() && given.ndim() == 2;
    step.out = read_output(out, "logits", all ? Shape{step.ids.size(), vocab_size} : Shape{vocab_size});
    return step;
}

/// No two steps write their logits to the same memory.
void refuse_shared_logits(const std::vector<HeldStep>& steps) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].out.data) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return steps[a].out.data < steps[b].out.data; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const std::span<float> before = steps[order[i - 1]].out.span();
        if (steps[order[i]].out.data >= before.data() + before.size()) continue;
        const auto [first, second] = std::minmax(order[i - 1], order[i]);
        refuse_value("steps[" + std::to_string(second) + "]: logits", "memory of its own",
                     "that of steps[" + std::to_string(first) + "]");
    }
}

void PyWorkspace::forward(const nb::list& objects) {
    std::vector<HeldStep> held;
    for (nb::handle object : objects) held.push_back(read_step(object, output_stack(opened_->config()).vocab_size));
    refuse_shared_logits(held);
    std::vector<Step> steps;
    std::vector<Pool*> pools;
    for (const HeldStep& step : held) {
        steps.push_back({step.cache->cache(), step.ids, step.out.span(), step.memory ? step.memory->cache() : Cache{}});
        pools.push_back(step.cache->pool().get());
        if (step.memory) pools.push_back(step.memory->pool().get());
    }
    require(gate_.run([&] {
        const PoolLocks locks(pools);
        return fovea::forward(*workspace_, steps);
    }),
            "steps");
}

void PyWorkspace::cache_memory(const nb::list& caches, const nb::list& sources) {
    if (caches.size() != sources.size() || caches.size() == 0)
        refuse_value("memories", "1 or more and as many sources",
                     std::to_string(caches.size()) + " and " + std::to_string(sources.size()));
    const Config& config = opened_->model.config();
    const Stack& reader = input_stack(opened_->config());
    const bool reads_ids = config.encoder.n_layers != 0 && reader.vocab_size != 0;
    std::vector<Cache> memories;
    std::vector<Pool*> pools;
    std::vector<Token> ids;
    std::vector<float> vectors;
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < caches.size(); ++i) {
        PyCache* cache = nb::cast<PyCache*>(caches[i]);
        memories.push_back(cache->cache());
        pools.push_back(cache->pool().get());
        if (reads_ids) {
            const std::vector<Token> of = read_ids(sources[i], "sources");
            ids.insert(ids.end(), of.begin(), of.end());
            lengths.push_back(static_cast<std::uint32_t>(of.size()));
            continue;
        }
        const Floats of = read_packed(sources[i], "sources", 2);
        if (!of.data || of.shape[1] != reader.d_model)
            refuse_value("sources", "[n, " + std::to_string(reader.d_model) + "] in each", in_words(of.shape));
        vectors.insert(vectors.end(), of.span().begin(), of.span().end());
        lengths.push_back(static_cast<std::uint32_t>(of.shape[0]));
    }
    EncodeInput input;
    if (config.encoder.n_layers) {
        input.source.ids = ids;
        input.source.vectors = vectors;
        input.source.lengths = lengths;
    } else {
        input.memory = vectors;
        input.memory_lengths = lengths;
    }
    require(gate_.run([&] {
        const PoolLocks locks(pools);
        return fovea::cache_memory(*workspace_, input, memories);
    }),
            "memories");
}

}  // namespace

void bind_workspace(nb::module_& module) {
    nb::class_<PyCache>(module, "Cache", "What a model remembers of one text.")
        .def("fork", &PyCache::fork)
        .def("rewind", &PyCache::rewind_to, nb::arg("kv_len"))
        .def("mark", &PyCache::mark)
        .def("save", &PyCache::save)
        .def("restore", &PyCache::restore, nb::arg("saved"))
        .def("close", &PyCache::close)
        .def_prop_ro("kv_len", &PyCache::kv_len)
        .def_prop_ro("n_pages", &PyCache::n_pages);
    nb::class_<PyPool>(module, "CachePool", "Pages that caches share.")
        .def(nb::init<const ModelHandle&, const nb::dict&>(), nb::arg("model"), nb::arg("limits"))
        .def("cache", &PyPool::cache)
        .def_prop_ro("n_free_pages", &PyPool::n_free_pages)
        .def_prop_ro("n_free_sequences", &PyPool::n_free_sequences)
        .def_prop_ro("arena_bytes", [](const PyPool& self) { return self.pool().pool.plan.arena_bytes; });
    nb::class_<PyWorkspace>(module, "Workspace", "Threads and the rows of one pass.")
        .def(nb::init<const ModelHandle&, const nb::dict&, const std::string&>(), nb::arg("model"), nb::arg("limits"),
             nb::arg("isa") = "")
        .def("forward", &PyWorkspace::forward, nb::arg("steps"))
        .def("cache_memory", &PyWorkspace::cache_memory, nb::arg("memories"), nb::arg("sources"))
        .def("cancel", &PyWorkspace::cancel)
        .def_prop_ro("arena_bytes", &PyWorkspace::arena_bytes);
}

}  // namespace fovea::python
