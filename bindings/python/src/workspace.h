// Many sequences: workspaces, pools, caches and steps as Python has them.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/python/src/arrays.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/interrupt.h"
#include "bindings/python/src/opened.h"
#include "fovea/encode.h"
#include "fovea/host/runtime.h"

namespace fovea::python {

/// A pool with its bytes. Caches keep it.
class Pool {
public:
    Pool(const ModelHandle& model, const nb::dict& limits);
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
    void drop(Cache cache) noexcept;
    void end_dropped() noexcept;

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

    [[nodiscard]] std::unique_ptr<PyCache> fork();
    std::uint32_t rewind_to(std::uint32_t kv_len);
    void mark();
    [[nodiscard]] nb::bytes save();
    void restore(const nb::bytes& saved);
    void close();
    [[nodiscard]] std::uint32_t kv_len();
    [[nodiscard]] std::uint32_t n_pages();
    [[nodiscard]] const std::shared_ptr<Pool>& pool() const { return pool_; }
    [[nodiscard]] Cache cache() const { return cache_; }

private:
    std::shared_ptr<Pool> pool_;
    Cache cache_;
};

class PyPool {
public:
    PyPool(const ModelHandle& model, const nb::dict& limits) : pool_(std::make_shared<Pool>(model, limits)) {}

    [[nodiscard]] std::unique_ptr<PyCache> cache();
    [[nodiscard]] std::uint32_t n_free_pages();
    [[nodiscard]] std::uint32_t n_free_sequences();
    [[nodiscard]] const Pool& pool() const { return *pool_; }

private:
    std::shared_ptr<Pool> pool_;
};

class PyWorkspace {
public:
    PyWorkspace(const ModelHandle& model, const nb::dict& limits, const std::string& isa);
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

void bind_workspace(nb::module_& module);

}  // namespace fovea::python
