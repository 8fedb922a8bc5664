// The group of ranks, and the replicas of a network on them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/sync_batch_norm.h"
#include "parsimony/training/ranks/group.h"
#include "parsimony/training/ranks/replicas.h"
#include "tests/support/message_of.h"
#include "tests/training/on_ranks.h"

namespace parsimony::training {
namespace {

using test::on_ranks;

TEST(RankGroup, SumsAndShares) {
  on_ranks(3, [](const RankGroup& group) {
    const at::Tensor numbers = at::full({4}, group.rank() + 1, at::kDouble);
    group.sum(numbers);
    EXPECT_TRUE(numbers.equal(at::full({4}, 6, at::kDouble)));
    EXPECT_EQ(group.share("of " + std::to_string(group.rank())), "of 0");
    EXPECT_EQ(group.share(group.rank() == 0 ? "" : "longer"), "");
    EXPECT_EQ(group.share(0.5 + group.rank()), 0.5);
    EXPECT_EQ(group.sum(int64_t{group.rank()}), 3);
    const at::Tensor own = at::arange(6, at::kFloat).reshape({2, 3}) + group.rank();
    const at::Tensor bytes = at::full({5}, group.rank(), at::kByte);
    group.share(std::vector<at::Tensor>{own, bytes, at::empty({0})});
    EXPECT_TRUE(own.equal(at::arange(6, at::kFloat).reshape({2, 3})));
    EXPECT_TRUE(bytes.equal(at::zeros({5}, at::kByte)));
    group.wait();
  });
}

TEST(RankGroup, SumsOfEverySizeFollowEachOther) {
  for (const bool shares_memory : {true, false}) {
    const auto sums = [](const RankGroup& group) {
      for (int64_t round = 0; round < 300; ++round) {
        // The long ones are summed part by part in shared memory.
        const int64_t size = round % 50 == 0 ? 300'000 : 1 + round % 50;
        const at::Tensor own = at::arange(size, at::kFloat) * (group.rank() + 1) + round;
        group.sum(own);
        ASSERT_TRUE(own.equal(at::arange(size, at::kFloat) * 6 + 3 * round)) << round;
      }
    };
    on_ranks(3, sums, 120, shares_memory);
  }
}

TEST(RankGroup, NamesTheRankThatDiffers) {
  EXPECT_EQ(test::message_of<ConfigError>([] {
              on_ranks(3, [](const RankGroup& group) {
                group.agree("the recipe", "same");
                group.agree("the data", group.rank() == 2 ? "other" : "same");
              });
            }),
            "rank 2 and rank 0 differ in the data; all ranks must have the same");
}

TEST(RankGroup, ALostRankEndsTheOthers) {
  const std::string message = test::message_of<IoError>([] {
    on_ranks(
        2,
        [](const RankGroup& group) {
          if (group.rank() == 1) return;  // it is gone
          group.sum(at::ones({1}));
        },
        1);
  });
  EXPECT_TRUE(message.starts_with("rank 0 of 2 on ")) << message;
  EXPECT_NE(message.find(", summing: rank 1 is lost"), std::string::npos) << message;
}

struct ToyImpl : torch::nn::Module {
  explicit ToyImpl(bool norm) {
    a = register_module("a", torch::nn::Linear(6, 16));
    if (norm) bn = register_module("bn", torch::nn::BatchNorm1d(16));
    b = register_module("b", torch::nn::Linear(16, 3));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = a(x);
    if (bn) h = bn(h);
    return b(at::relu(h));
  }
  torch::nn::Linear a = nullptr;
  torch::nn::BatchNorm1d bn = nullptr;
  torch::nn::Linear b = nullptr;
};
TORCH_MODULE(Toy);

at::Tensor toy_samples(int64_t count) {
  return at::randn({count, 6}, at::detail::createCPUGenerator(3), at::kFloat);
}

at::Tensor toy_loss(Toy& net, const at::Tensor& x) { return (net->forward(x) - 1).square().mean(); }

/// All parameters, one after the other.
at::Tensor flattened(const Toy& net, bool gradients) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& p : net->parameters()) {
    parts.push_back((gradients ? p.grad() : p).detach().flatten());
  }
  return at::cat(parts);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

Toy seeded_toy(bool norm = false) {
  at::manual_seed(1);
  return Toy(norm);
}

TEST(Replicas, HaveTheGradientsOfAllSamples) {
  for (const int64_t count : {8, 7, 1}) {
    SCOPED_TRACE(count);
    Toy whole = seeded_toy();
    const at::Tensor x = toy_samples(count);
    toy_loss(whole, x).backward();
    const at::Tensor requested = flattened(whole, true);
    for (const bool shares_memory : {true, false}) {
      Toy nets[] = {seeded_toy(), Toy(false), Toy(false)};  // those of the others do not matter
      const auto step = [&](const RankGroup& group) {
        Toy& net = nets[group.rank()];
        Replicas replicas(group, *net);
        const int64_t begin = count * group.rank() / 3;
        const int64_t end = count * (group.rank() + 1) / 3;
        const at::Tensor own = x.slice(0, begin, end);
        replicas.backward(end > begin ? toy_loss(net, own) : at::Tensor(), end - begin);
      };
      on_ranks(3, step, 120, shares_memory);
      for (Toy& net : nets) {
        EXPECT_LT(distance(flattened(net, true), requested), 1e-6);
        EXPECT_TRUE(flattened(net, true).equal(flattened(nets[0], true)));
        EXPECT_TRUE(flattened(net, false).equal(flattened(nets[0], false)));
      }
    }
  }
}

TEST(Replicas, NameTheStepInWhichARankIsLost) {
  for (const bool shares_memory : {true, false}) {
    const auto steps = [](const RankGroup& group) {
      Toy net = seeded_toy();
      Replicas replicas(group, *net);
      for (int step = 0; step < 2 - group.rank(); ++step) {
        replicas.backward(toy_loss(net, toy_samples(4)));
      }
    };
    const std::string message =
        test::message_of<IoError>([&] { on_ranks(2, steps, 1, shares_memory); });
    EXPECT_NE(message.find("exchanging gradients of step 1: rank 1 is lost"), std::string::npos)
        << message;
  }
}

TEST(Replicas, StayTheSameOverManySteps) {
  const at::Tensor x = toy_samples(64);
  const auto train = [&](Toy& net, const std::function<void(const at::Tensor&)>& backward) {
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    for (int64_t step = 0; step < 50; ++step) {
      backward(x.narrow(0, step % 4 * 16, 16));
      optimizer.step();
      optimizer.zero_grad();
    }
  };
  Toy whole = seeded_toy();
  train(whole, [&](const at::Tensor& batch) { toy_loss(whole, batch).backward(); });
  Toy nets[] = {seeded_toy(), Toy(false)};
  on_ranks(2, [&](const RankGroup& group) {
    Toy& net = nets[group.rank()];
    Replicas replicas(group, *net, {.first_bucket = 64, .bucket = 256});
    train(net, [&](const at::Tensor& batch) {
      replicas.backward(toy_loss(net, batch.narrow(0, group.rank() * 8, 8)));
    });
  });
  EXPECT_LT(distance(flattened(nets[0], false), flattened(whole, false)), 1e-4);
  EXPECT_TRUE(flattened(nets[0], false).equal(flattened(nets[1], false)));
}

/// How far the gradients of two ranks, with half of 16 samples each, are from those of one network.
std::vector<double> distances_of_two(
    const ReplicasOptions& options,
    const std::function<void(Replicas&, Toy&, const at::Tensor& own)>& backward) {
  const at::Tensor x = toy_samples(16);
  Toy whole = seeded_toy();
  toy_loss(whole, x).backward();
  Toy nets[] = {seeded_toy(), Toy(false)};
  on_ranks(2, [&](const RankGroup& group) {
    Toy& net = nets[group.rank()];
    Replicas replicas(group, *net, options);
    backward(replicas, net, x.narrow(0, group.rank() * 8, 8));
  });
  std::vector<double> distances;
  for (Toy& net : nets) distances.push_back(distance(flattened(net, true), flattened(whole, true)));
  return distances;
}

TEST(Replicas, AccumulateWithoutAMessage) {
  const auto backward = [](Replicas& replicas, Toy& net, const at::Tensor& own) {
    replicas.accumulate(toy_loss(net, own.narrow(0, 0, 4)) / 2);
    replicas.backward(toy_loss(net, own.narrow(0, 4, 4)) / 2);
  };
  for (const double apart : distances_of_two({}, backward)) EXPECT_LT(apart, 1e-6);
}

TEST(Replicas, UnusedParametersAreFoundOrRefused) {
  const auto step = [](bool find) {
    Toy nets[] = {seeded_toy(), Toy(false)};
    on_ranks(2, [&](const RankGroup& group) {
      Toy& net = nets[group.rank()];
      Replicas replicas(group, *net, {.find_unused = find});
      for (int i = 0; i < 2; ++i) replicas.backward(net->a(toy_samples(4)).square().mean());
      EXPECT_TRUE(net->a->weight.grad().defined());
    });
  };
  step(true);
  EXPECT_NE(test::message_of<UnsupportedError>([&] { step(false); }).find("find_unused"),
            std::string::npos);
}

TEST(Replicas, HalvesOfGradientsAreClose) {
  const auto backward = [](Replicas& replicas, Toy& net, const at::Tensor& own) {
    replicas.backward(toy_loss(net, own));
  };
  for (const double apart : distances_of_two({.half = true}, backward)) {
    EXPECT_LT(apart, 2e-3);
    EXPECT_GT(apart, 1e-6);
  }
}

TEST(Replicas, ShareRunningStatisticsWhenAsked) {
  Toy nets[] = {seeded_toy(true), Toy(true)};
  on_ranks(2, [&](const RankGroup& group) {
    Toy& net = nets[group.rank()];
    Replicas replicas(group, *net);
    replicas.backward(toy_loss(net, toy_samples(8) + group.rank()));
    group.wait();
    if (group.is_first()) {
      EXPECT_FALSE(nets[1]->bn->running_mean.equal(nets[0]->bn->running_mean));
    }
    group.wait();
    replicas.share_buffers();
  });
  EXPECT_TRUE(nets[1]->bn->running_mean.equal(nets[0]->bn->running_mean));
  EXPECT_TRUE(nets[1]->bn->num_batches_tracked.equal(nets[0]->bn->num_batches_tracked));
}

class SyncedNormsOf : public ::testing::TestWithParam<at::ScalarType> {};

INSTANTIATE_TEST_SUITE_P(Types, SyncedNormsOf, ::testing::Values(at::kFloat, at::kDouble));

TEST_P(SyncedNormsOf, HaveTheStatisticsOfAllSamples) {
  const at::Tensor x = (toy_samples(24) * 3 + 1).to(GetParam());
  Toy whole = seeded_toy(true);
  whole->to(GetParam());
  toy_loss(whole, x).backward();
  Toy nets[] = {seeded_toy(true), Toy(true), Toy(true)};
  for (Toy& net : nets) net->to(GetParam());
  on_ranks(3, [&](const RankGroup& group) {
    Toy& net = nets[group.rank()];
    Replicas replicas(group, *net);
    const torch_io::SyncBatchNorm synced([&](const at::Tensor& sums) { group.sum(sums); });
    const int64_t begin = group.rank() * 8;
    // Not as many each.
    const at::Tensor own =
        x.slice(0, begin - (group.rank() == 2 ? 3 : 0), begin + 8 - (group.rank() == 1 ? 3 : 0));
    replicas.backward(toy_loss(net, own), own.size(0));
  });
  for (Toy& net : nets) {
    EXPECT_LT(distance(flattened(net, true), flattened(whole, true)), 1e-5);
    EXPECT_LT(distance(net->bn->running_mean, whole->bn->running_mean), 1e-6);
    EXPECT_LT(distance(net->bn->running_var, whole->bn->running_var), 1e-6);
  }
}

TEST(Replicas, OtherNetworksAreRefused) {
  EXPECT_EQ(
      test::message_of<ConfigError>([] {
        on_ranks(2, [](const RankGroup& group) {
          Toy net(group.is_first());
          Replicas replicas(group, *net);
        });
      }),
      "rank 1 and rank 0 differ in the parameters of the network; all ranks must have the same");
}

}  // namespace
}  // namespace parsimony::training
