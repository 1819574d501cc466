// The engine's own name for a public function.
#pragma once
#include "fovea/checksum.h"
