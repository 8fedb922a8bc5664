// Recovery step by step, on libtorch.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "parsimony/api/recovery/output_error.h"
#include "parsimony/api/recovery/recover.h"
#include "parsimony/api/recovery/refit.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/recovery/ends.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::test {

using training::Batches;

inline RefitData data_of(Engine& engine, const SmallNetwork& small, const Batches& batches,
                         int64_t batch) {
  return {engine, [&small, batches, batch](bool of_small) {
            training::BatchSource feed = batches(batch);
            return training::values_of(of_small ? training::small_feed(small, std::move(feed))
                                                : std::move(feed));
          }};
}

inline int refit(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
                 const Batches& batches, const RefitOptions& options) {
  torch_io::TorchEngine engine;
  return parsimony::refit(data_of(engine, small, batches, options.batch), dense, small, fixed,
                          options);
}

inline int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch) {
  torch_io::TorchEngine engine;
  return parsimony::estimate_batch_norms(data_of(engine, small, batches, batch), small);
}

inline double output_error(const Graph& dense, const SmallNetwork& small, const Batches& batches,
                           int64_t batch) {
  torch_io::TorchEngine engine;
  Part part(engine, dense);
  const RefitData data = data_of(engine, small, batches, batch);
  KnownOutputs known;
  return parsimony::output_error(engine, part, small, data.feed(false), data.feed(true), known);
}

/// See parsimony::rows_of().
inline at::Tensor rows_of(Engine& engine, const RowsOf& rows, const at::Tensor& x) {
  GraphBuilder builder(kSumsOpset);
  const ValueId input = input_in_floats(builder, torch_io::dtype_of(x.scalar_type()));
  builder.output(parsimony::rows_of(builder, rows, input, x.sizes().vec()));
  Part part(engine, builder.finished());
  return torch_io::tensor_of(part.run(training::values_of({x})).front());
}

/// A layer's answer in that order.
inline at::Tensor answer_rows(const at::Tensor& answer, int64_t axis, int64_t groups) {
  const at::Tensor last = answer.movedim(axis, -1);
  return last.reshape({-1, groups, last.size(-1) / groups}).transpose(0, 1);
}

}  // namespace parsimony::test
