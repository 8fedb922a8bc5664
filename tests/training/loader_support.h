// Samples to load, and all batches of an epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/data/dataset.h"
#include "parsimony/training/loader/loader.h"

namespace parsimony::training::data_test {

/// Images of random values, none of them 0. Labels count up.
Samples some_samples(int64_t count, Shape dims = {3, 8, 6});

/// Of one sample as stored, [c, h, w], as numbers.
at::Tensor stored(const Samples& samples, int64_t index);

std::vector<Batch> epoch_of(Loader& loader, int64_t epoch, int64_t first_batch = 0);

}  // namespace parsimony::training::data_test
