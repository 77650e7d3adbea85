#pragma once
#include "synth/plan/draft.h"

namespace acu::synth::plan {

/// One name for one axis: a statement calls an axis as the buffers that it reads were first subscripted. Definitions that came together from several operators then share loops.
void align_names(Draft& draft);

}  // namespace acu::synth::plan
