// Who waits for long work is told how far it is.
#pragma once
#include <cstdint>
#include <functional>

namespace fovea {

/// Called now and then with what is done and with all there is: bytes, tokens, matrices.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace fovea
