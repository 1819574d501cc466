#include "serve/http/held_bytes.h"

#include <algorithm>

namespace fovea::serve {

bool HeldBytes::take(const std::string& peer, std::size_t n, const BodyLimits& limits) {
    const std::lock_guard lock(mutex_);
    if (n == 0) return true;
    const auto found = n_of_.find(peer);
    const std::size_t has = found == n_of_.end() ? 0 : found->second;
    if (n_all_ + n > limits.all_bytes || has + n > std::max(limits.all_bytes / 2, limits.bytes)) return false;
    n_of_[peer] = has + n;
    n_all_ += n;
    return true;
}

void HeldBytes::give_back(const std::string& peer, std::size_t n) {
    const std::lock_guard lock(mutex_);
    if (n == 0) return;
    n_all_ -= n;
    if ((n_of_[peer] -= n) == 0) n_of_.erase(peer);
}

bool BodyBytes::resize(std::size_t n, const BodyLimits& limits) {
    if (n < n_) held_->give_back(peer_, n_ - n);
    if (n > n_ && !held_->take(peer_, n - n_, limits)) return false;
    n_ = n;
    return true;
}

}  // namespace fovea::serve
