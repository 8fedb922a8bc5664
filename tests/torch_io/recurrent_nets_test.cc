// Recurrent layers in every form that torch::nn gives them, live and as TorchScript: what is
// pruned, and that both come to the same network.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/live/module_editor.h"
#include "parsimony/torch_io/mirror.h"
#include "parsimony/torch_io/prune.h"
#include "parsimony/torch_io/script/read.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

namespace nn = torch::nn;
using at::Tensor;

constexpr int64_t kInput = 6;
constexpr int64_t kHidden = 8;
constexpr int64_t kProjected = 5;

struct Form {
  std::string kind;  // "LSTM", "GRU", "RNN"
  int64_t layers = 1;
  bool bidirectional = false;
  bool batch_first = false;
  bool states = false;  ///< given, as parameters of the network
  bool projects = false;
  bool bias = true;

  int64_t width() const { return projects ? kProjected : kHidden; }
  int64_t runs() const { return layers * (bidirectional ? 2 : 1); }
};

std::string name_of(const Form& form) {
  return form.kind + std::to_string(form.layers) + (form.bidirectional ? "Both" : "") +
         (form.batch_first ? "BatchFirst" : "") + (form.states ? "States" : "") +
         (form.projects ? "Projected" : "") + (form.bias ? "" : "NoBias");
}

/// A layer of this form and a Linear behind it.
class RecurrentNet : public nn::Module {
 public:
  explicit RecurrentNet(const Form& form) : form_(form) {
    at::manual_seed(3);
    if (form.kind == "LSTM") {
      lstm_ = register_module(
          "rnn", nn::LSTM(with<nn::LSTMOptions>(form).proj_size(form.projects ? kProjected : 0)));
    } else if (form.kind == "GRU") {
      gru_ = register_module("rnn", nn::GRU(with<nn::GRUOptions>(form)));
    } else {
      plain_ = register_module("rnn", nn::RNN(with<nn::RNNOptions>(form)));
    }
    fc_ = register_module("fc", nn::Linear(form.width() * (form.bidirectional ? 2 : 1), 3));
    if (form.states) {
      h0_ = register_parameter("h0", at::randn({form.runs(), 2, form.width()}));
      if (form.kind == "LSTM") c0_ = register_parameter("c0", at::randn({form.runs(), 2, kHidden}));
    }
  }

  Tensor forward(const Tensor& x) { return fc_(states(x)); }

 private:
  template <typename Options>
  static Options with(const Form& form) {
    return Options(kInput, kHidden)
        .num_layers(form.layers)
        .bidirectional(form.bidirectional)
        .batch_first(form.batch_first)
        .bias(form.bias)
        .dropout(form.layers > 1 ? 0.3 : 0);
  }

  Tensor states(const Tensor& x) {
    if (lstm_) {
      return std::get<0>(form_.states ? lstm_(x, std::tuple(h0_, c0_)) : lstm_(x));
    }
    if (gru_) return std::get<0>(form_.states ? gru_(x, h0_) : gru_(x));
    return std::get<0>(form_.states ? plain_(x, h0_) : plain_(x));
  }

  Form form_;
  nn::LSTM lstm_{nullptr};
  nn::GRU gru_{nullptr};
  nn::RNN plain_{nullptr};
  nn::Linear fc_{nullptr};
  Tensor h0_;
  Tensor c0_;
};

std::vector<int> sizes_of(const Plan& plan) {
  std::vector<int> sizes;
  for (const PlanGroup& group : plan.groups) sizes.push_back(group.size);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

class RecurrentNets : public testing::TestWithParam<Form> {};

TEST_P(RecurrentNets, ShrinkAlikeLiveAndInAFile) {
  const Form& form = GetParam();
  RecurrentNet net(form);
  net.eval();
  const Tensor x =
      at::randn(form.batch_first ? at::IntArrayRef{2, 7, kInput} : at::IntArrayRef{7, 2, kInput});
  const torch_io::Forward forward = [&](const std::vector<Tensor>& inputs) {
    return net.forward(inputs.at(0));
  };
  const Pruned script = prune(torch_io::traced(net, forward, {x}), {x});
  const std::vector<int> requested =
      form.projects ? std::vector<int>{kProjected, kHidden} : std::vector<int>{kHidden};
  EXPECT_EQ(sizes_of(script.pruning.plan), requested) << script.dump;
  EXPECT_LE(script.difference, 1e-5);
  EXPECT_LE(script.misread.value_or(1), 1e-5);

  const auto config = from_shorthand({.criterion = "l1", .ratio = 0.5});
  const parsimony::Pruned live = parsimony::prune(net, forward, {x}, config);
  EXPECT_TRUE(live.proof.holds());
  EXPECT_EQ(sizes_of(live.plan), requested);
  const at::NoGradGuard no_grad;
  EXPECT_LE(relative_difference({net.forward(x)}, run(script.small, {x})), 1e-5);
}

TEST(RecurrentProjection, IsNeverAsWideAsWhatItProjects) {
  nn::LSTM lstm(nn::LSTMOptions(5, 6).proj_size(4));
  torch_io::ModuleEditor editor(*lstm);
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 24; ++row) {
    if (row % 6 < 4) rows.push_back(row);
  }
  for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
    editor.slice(name, std::vector<AxisKeep>{{0, 24, rows}});
  }
  editor.slice("weight_hr_l0", std::vector<AxisKeep>{{1, 6, {0, 1, 2, 3}}});
  try {
    editor.commit();
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(),
                 "the module: a recurrent layer cannot be pruned like this: libtorch treats a "
                 "projection to the same size as none; both would be 4");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, RecurrentNets,
    testing::Values(Form{"LSTM"}, Form{"LSTM", 2, true, true}, Form{"LSTM", 2, true, false, true},
                    Form{"LSTM", 3, false, false, false, false, false},
                    Form{"LSTM", 1, false, false, false, true},
                    Form{"LSTM", 2, true, true, false, true},
                    Form{"LSTM", 2, false, false, true, true},
                    Form{"LSTM", 2, true, false, true, true, false}, Form{"GRU", 2, true, true},
                    Form{"GRU", 2, true, false, true}, Form{"RNN", 2, true, true},
                    Form{"RNN", 2, true, false, true}),
    [](const auto& form) { return name_of(form.param); });

}  // namespace
}  // namespace parsimony::test
