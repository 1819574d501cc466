// What a sketch includes.
#pragma once
#include "fovea/fovea.h"
