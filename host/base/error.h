// What the engine refuses, as an exception of host code.
#pragma once
#include <string>

#include "fovea/host/error.h"
#include "fovea/status.h"

namespace fovea {

/// A status that is not ok in words. An unreadable file's say why; a checksum's give both in hexadecimal.
[[nodiscard]] std::string status_words(const Status& status);

/// Throws host::Error unless `status` is ok: its words, after `subject` (mostly a file's name) where there is one.
void require(const Status& status, const std::string& subject = {});

}  // namespace fovea
