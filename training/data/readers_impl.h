// One reader per spec. Each fills name, classes and the two parts; what they share (limits, scale,
// fingerprint) is done by read_dataset. `place` is what follows the colon of the spec.
#pragma once

#include <string>

#include "parsimony/training/data/dataset.h"

namespace parsimony::training {

Dataset read_cifar10(const std::string& place, const DatasetOptions& options);
Dataset read_cifar100(const std::string& place, const DatasetOptions& options);
Dataset read_idx(const std::string& place, const DatasetOptions& options);
Dataset read_folder(const std::string& place, const DatasetOptions& options);
Dataset read_npy(const std::string& place, const DatasetOptions& options);
Dataset draw_shapes(const std::string& counts, const DatasetOptions& options);

/// Keeps the first `limit` samples.
void keep_first(Samples& samples, std::optional<int64_t> limit);

/// Where there is no test part: so many of `count` samples make one.
/// @throws ConfigError if either part would be empty
int64_t test_part_of(int64_t count, const DatasetOptions& options, const std::string& spec);

}  // namespace parsimony::training
