// Budgets of whole networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "parsimony/api/prune_file.h"
#include "parsimony/base/files.h"
#include "tests/support/fixture.h"
#include "tests/support/model.h"

namespace parsimony {
namespace {

/// Of two layers with eight channels, those of the first cost 21 times as much: what they lose may
/// be a few times larger.
TEST(NetworkBudgets, DivideLossesByWhatAChannelCosts) {
  test::TextModel model(R"(
      net (float[1,3,16,16] x) => (float[1,2,4,4] y)
      {
        a = Conv<pads=[1,1,1,1]>(x, W1)
        b = Conv<strides=[4,4]>(a, W2)
        y = Conv(b, W3)
      })",
                        {{"W1", "8x3x3x3"}, {"W2", "8x8x1x1"}, {"W3", "2x8x1x1"}});
  PruneRequest request;
  PruneServices services;
  services.measure = [](const Graph&, const Facts&, const Coupling& coupling, const Needs&) {
    Statistics statistics;
    statistics.samples = 1;
    for (const Group& group : coupling.groups) {
      statistics.groups.push_back(group.id);
      const double loss = statistics.groups.size() == 1 ? 3 : 1;
      statistics.channels[Measure::kFisher].push_back(std::vector<double>(group.size, loss));
    }
    return statistics;
  };
  const auto kept = [&](const char* budget) {
    const Shorthand requested{
        .criterion = "fisher", .ratio = 0.2, .scope = "global", .budget = budget};
    request.config = from_shorthand(requested);
    const Plan plan = plan_pruning(model.graph(), request, services).plan;
    std::map<std::string, int> sizes;
    for (const PlanGroup& group : plan.groups) sizes[group.id] = group.kept;
    return sizes;
  };
  EXPECT_EQ(kept("macs"), (std::map<std::string, int>{{"g0", 6}}));
  EXPECT_EQ(kept("channels"), (std::map<std::string, int>{{"g1", 5}})) << "all cost the same";
}

/// One bias for layers whose channels go separately: it is written once for each of them.
onnx::ModelProto one_bias_for(int layers) {
  std::string text = "g (float[1,3,8,8] x) => (float[1,4,8,8] y) { a0 = Conv(x, w0)";
  for (int i = 1; i <= layers; ++i) {
    const std::string n = std::to_string(i);
    text += " b" + n + " = Conv(a" + std::to_string(i - 1) + ", w" + n + ", bias) a" + n +
            " = Relu(b" + n + ")";
  }
  onnx::ModelProto model =
      test::model_of(text + " y = Conv(a" + std::to_string(layers) + ", last) }");
  test::add_weight(model, "w0", "16x3x1x1");
  for (int i = 1; i <= layers; ++i) test::add_weight(model, "w" + std::to_string(i), "16x16x1x1");
  test::add_weight(model, "bias", "16");
  test::add_weight(model, "last", "4x16x1x1");
  return model;
}

/// Prunes to `budget` and writes. @returns what was planned
PruneResult written(const onnx::ModelProto& model, const std::string& budget,
                    const test::TemporaryFolder& folder) {
  write_file(folder / "in.onnx", model.SerializeAsString());
  PruneRequest request;
  request.verify = false;
  request.config = from_shorthand({.budget = budget});
  return prune_file(folder / "in.onnx", folder / "out.onnx", request);
}

TEST(NetworkBudgets, CountTheVectorsThatAreWritten) {
  for (const int layers : {2, 3}) {
    const test::TemporaryFolder folder;
    const int most = layers == 2 ? 290 : 400;
    const PruneResult result =
        written(one_bias_for(layers), "params=" + std::to_string(most), folder);
    int64_t elements = 0;
    onnx::ModelProto small;
    ASSERT_TRUE(small.ParseFromString(read_file(folder / "out.onnx")));
    int biases = 0;
    for (const onnx::TensorProto& tensor : small.graph().initializer()) {
      elements += static_cast<int64_t>(tensor.raw_data().size() / sizeof(float));
      biases += tensor.dims_size() == 1 ? 1 : 0;
    }
    EXPECT_EQ(biases, layers);
    EXPECT_EQ(result.small.params, elements);
    EXPECT_LE(elements, most);
    EXPECT_GT(elements, most * 3 / 4) << "no more is removed than has to be";
  }
}

/// Bytes of the model's file and of all files beside it, before and after.
TEST(NetworkBudgets, OfBytesCountTheFilesBesideTheModel) {
  for (const int every : {1, 2}) {
    const test::TemporaryFolder folder;
    onnx::ModelProto model = one_bias_for(2);
    int n = 0;
    for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
      if (n++ % every != 0) continue;
      const std::string name = tensor.name() + ".data";
      write_file(folder / name, tensor.raw_data());
      tensor.clear_raw_data();
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      onnx::StringStringEntryProto& location = *tensor.add_external_data();
      location.set_key("location");
      location.set_value(name);
    }
    const PruneResult result = written(model, "file=2400", folder);
    const int64_t bytes =
        size_of_file(folder / "out.onnx") + size_of_file(folder / "out.onnx.data");
    EXPECT_GT(bytes, 2000) << "no more is removed than has to be";
    EXPECT_LT(bytes, 2400 + 64 * 6) << "but for the alignment of six tensors";
    const auto& notes = result.notes;
    const bool said = std::ranges::any_of(notes, [&](const std::string& note) {
      return note ==
             "asked for at most 2400 bytes of the file: " + std::to_string(bytes) + " remain";
    });
    EXPECT_EQ(said, bytes > 2400);
  }
}

/// What is written beside the weights is not known before: names of copies and alignment.
TEST(NetworkBudgets, AreNotExceededInSilence) {
  EXPECT_EQ(above_file_budget(from_shorthand({.budget = "file=100"}), 500, 100),
            std::vector<std::string>());
  EXPECT_EQ(above_file_budget(from_shorthand({.budget = "file=100"}), 500, 101),
            std::vector<std::string>({"asked for at most 100 bytes of the file: 101 remain"}));
  EXPECT_EQ(above_file_budget(from_shorthand({.budget = "file=50%,macs=10%"}), 500, 251),
            std::vector<std::string>({"asked for at most 250 bytes of the file: 251 remain"}));
  EXPECT_EQ(above_file_budget(from_shorthand({.ratio = 0.5, .budget = "macs"}), 500, 499),
            std::vector<std::string>());
}

}  // namespace
}  // namespace parsimony
