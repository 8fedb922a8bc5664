// One reader per spec. Each fills name, classes and the two parts; read_dataset does the rest
// (limits, scale, fingerprint). `place` is the part of the spec after the colon.
#pragma once

#include <string>
#include <vector>

#include "parsimony/data/dataset.h"

namespace parsimony {

Dataset read_cifar10(const std::string& place, const DatasetOptions& options);
Dataset read_cifar100(const std::string& place, const DatasetOptions& options);
Dataset read_idx(const std::string& place, const DatasetOptions& options);
Dataset read_folder(const std::string& place, const DatasetOptions& options);
Dataset read_npy(const std::string& place, const DatasetOptions& options);
Dataset draw_shapes(const std::string& counts, const DatasetOptions& options);
Dataset read_text(const std::string& place, const DatasetOptions& options);

/// Names of `count` classes that have none: "0", "1", ….
std::vector<std::string> numbers_from(int64_t first, int64_t count);

/// Keeps the first `limit` samples.
void keep_first(Samples& samples, std::optional<int64_t> limit);

/// Size of the test set split off `count` samples if there is none.
/// @throws ConfigError if either part would be empty
int64_t test_part_of(int64_t count, const DatasetOptions& options, const std::string& spec);

}  // namespace parsimony
