// Multiply-adds of operators that multiply more than once, against numbers by hand.
#include <gtest/gtest.h>

#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/mask.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// Of the fixture's network: dense, and without the first channel of its last group.
struct MultiplyAdds {
  int64_t dense = 0;
  int64_t small = 0;
};

MultiplyAdds of(const std::string& name) {
  const Fixture fixture =
      read_fixture(std::string(PARSIMONY_SOURCE_DIR "/tests/operators/") + name + ".txt");
  const TemporaryFolder folder;
  write_file(folder / "m.onnx", fixture.model.SerializeAsString());
  const onnx_io::ModelFile file(folder / "m.onnx");
  Graph graph = onnx_io::to_graph(file);
  PruneRequest request;
  request.granularity = parse_granularity(fixture.granularity, fixture.name);
  const Analysis analysis = analyse(graph, request);
  const CostModel cost(graph, analysis.facts, analysis.coupling);
  AxisMasks masks = AxisMasks::all_kept(analysis.coupling);
  masks.keep.back()[0] = 0;
  return {cost.dense().macs, cost.under(masks).macs};
}

TEST(MultiplyAdds, OfALayerWithStateCountTheStateToo) {
  // 5 steps, 2 sequences: 6 -> 8, then 4 gates of 5 units over 8 inputs and over 5 units, 5 -> 4.
  const MultiplyAdds lstm = of("lstm_states");
  EXPECT_EQ(lstm.dense, 10 * (6 * 8 + 20 * 8 + 20 * 5 + 5 * 4));
  EXPECT_EQ(lstm.small, 10 * (6 * 8 + 16 * 8 + 16 * 4 + 4 * 4));
  EXPECT_EQ(of("gru").dense, 10 * (6 * 8 + 15 * 8 + 15 * 5 + 5 * 4));
  EXPECT_EQ(of("rnn").dense, 10 * (6 * 8 + 5 * 8 + 5 * 5 + 5 * 4));
  EXPECT_EQ(of("torch_lstm").small, 10 * (6 * 8 + 16 * 8 + 16 * 4 + 4 * 4));
}

TEST(MultiplyAdds, OfAnEinsumAreTheProductOfItsLetters) {
  // 2 sequences of 5: 6 -> 8 -> 4.
  const MultiplyAdds einsum = of("einsum");
  EXPECT_EQ(einsum.dense, 10 * (6 * 8 + 8 * 4));
  EXPECT_EQ(einsum.small, 10 * (6 * 7 + 7 * 4));
}

TEST(MultiplyAdds, OfAttentionAreScoresAndValues) {
  // 2 sequences of 5: 6 -> 12 three times, 5 x 5 scores of 12, 5 x 5 over 12 values, 12 -> 6.
  const MultiplyAdds attention = of("ms_multi_head_attention");
  EXPECT_EQ(attention.dense, 2 * (4 * 5 * 6 * 12 + 25 * 12 + 25 * 12));
  EXPECT_EQ(attention.small, 2 * (5 * 6 * (12 + 12 + 10 + 10) + 25 * 12 + 25 * 10));
}

}  // namespace
}  // namespace parsimony::test
