// Signals that would end the program without a word, or not at all.
#pragma once

namespace fovea {

/// From here on SIGBUS names, on Linux, the mapped file that was cut, or that its disk cannot give, in one line on standard
/// error, with exit status 1. The first process of a container, for which the system's default is to ignore them, is ended
/// by SIGHUP, SIGINT and SIGTERM with exit status 128 and the signal's number. What is handled already, or ignored, stays
/// so.
void heed_end_signals();

}  // namespace fovea
