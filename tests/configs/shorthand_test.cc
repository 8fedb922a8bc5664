#include <gtest/gtest.h>

#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {
namespace {

std::string shorthand_error(const Shorthand& shorthand) {
  try {
    from_shorthand(shorthand);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Shorthand, IsOneEntry) {
  const ConfigList config = from_shorthand({.criterion = "l2",
                                            .ratio = 0.4,
                                            .op_types = {"Conv"},
                                            .exclude = {"fc"},
                                            .scope = "global",
                                            .budget = "params",
                                            .round_to = 8});
  ASSERT_EQ(config.entries.size(), 1U);
  const ConfigEntry& entry = config.entries[0];
  EXPECT_EQ(entry.op_types, (std::vector<std::string>{"Conv"}));
  EXPECT_EQ(entry.exclude_op_names, (std::vector<std::string>{"fc"}));
  EXPECT_EQ(entry.request.criterion, "l2");
  EXPECT_EQ(entry.request.ratio, 0.4);
  EXPECT_EQ(entry.request.scope, Scope::kGlobal);
  EXPECT_EQ(entry.request.budget, Budget::kParams);
  EXPECT_EQ(entry.request.round_to, 8);
}

TEST(Shorthand, TakesAnAmountInsteadOfARatio) {
  const Request macs = from_shorthand({.budget = "macs=2e9"}).entries.at(0).request;
  EXPECT_EQ(macs.budget, Budget::kMacs);
  EXPECT_EQ(macs.amount, 2e9);
  EXPECT_EQ(from_shorthand({.budget = "params=1.5M"}).entries.at(0).request.amount, 1.5e6);
  EXPECT_EQ(from_shorthand({.budget = "latency_ms=5"}).entries.at(0).request.amount, 5);
  const Request share = from_shorthand({.budget = "macs=75%"}).entries.at(0).request;
  EXPECT_DOUBLE_EQ(share.ratio, 0.25);
  EXPECT_FALSE(share.amount.has_value());
}

TEST(Shorthand, NamesTheOption) {
  EXPECT_EQ(shorthand_error({.ratio = 1.5}), "--ratio: found 1.5, expected a number in [0, 1)");
  EXPECT_EQ(shorthand_error({.ratio = std::numeric_limits<double>::quiet_NaN()}),
            "--ratio: found nan, expected a number in [0, 1)");
  EXPECT_EQ(
      shorthand_error({.scope = "all"}),
      "--scope: found \"all\", expected \"local\", \"global\", \"isomorphic\" or \"outputs\"");
  EXPECT_EQ(
      shorthand_error({.budget = "time"}),
      "--budget: found \"time\", expected \"channels\", \"params\", \"macs\", \"latency_ms\" or "
      "\"weights\"");
  EXPECT_EQ(shorthand_error({.budget = "channels=3"}),
            "--budget: found \"channels\", expected \"params\", \"macs\", \"latency_ms\", "
            "\"weights\", \"file\" or \"peak_ram\"");
  EXPECT_EQ(
      shorthand_error({.budget = "params=many"}),
      "--budget: found \"many\", expected a number above 0, as 2e9, or a share of the whole, as "
      "\"50%\"");
  EXPECT_EQ(shorthand_error({.budget = "params=0"}),
            "--budget: found 0, expected a number in (0, ∞)");
  EXPECT_EQ(shorthand_error({.budget = "macs=120%"}),
            "--budget: found 120%, expected a number in (0%, 100%]");
  EXPECT_EQ(shorthand_error({.ratio = 0.5, .budget = "params=1M"}),
            "--budget: an amount, as in \"params=1M\", sets the sparsity, and so does --ratio; "
            "pass one of them");
  EXPECT_EQ(shorthand_error({.round_to = 0}),
            "--round-to: found 0, expected a number in [1, 65536]");
  EXPECT_EQ(shorthand_error({.criterion = "l"}),
            "--criterion: unknown criterion \"l\"; this version has " + each_of(criterion_names()));
  EXPECT_EQ(shorthand_error({.criterion = "level", .ratio = 0.5, .round_to = 8}),
            "command line: criterion \"level\" zeroes single elements, but \"round_to\" is about "
            "channels");
}

TEST(Shorthand, ComparesCriteriaOverChannels) {
  const Request request =
      from_shorthand({.criterion = "obs,fisher", .ratio = 0.5}).entries.at(0).request;
  EXPECT_EQ(request.criterion, "obs");
  EXPECT_EQ(request.criteria, (std::vector<std::string>{"obs", "fisher"}));
  EXPECT_TRUE(from_shorthand({.criterion = "obs"}).entries.at(0).request.criteria.empty());
  EXPECT_EQ(shorthand_error({.criterion = "obs,2:4"}),
            "--criterion: criterion \"2:4\" does not rank channels, and cannot be compared with "
            "others");
  EXPECT_NE(shorthand_error({.criterion = "obs,"}), "no error");
}

TEST(Shorthand, ComparesScopes) {
  const Shorthand shorthand = {.criterion = "obs,l1", .ratio = 0.5, .scope = "local, global"};
  const Request request = from_shorthand(shorthand).entries.at(0).request;
  EXPECT_EQ(request.scope, Scope::kLocal);
  EXPECT_EQ(request.scopes, (std::vector{Scope::kLocal, Scope::kGlobal}));
  EXPECT_TRUE(from_shorthand({.scope = "global"}).entries.at(0).request.scopes.empty());
  EXPECT_EQ(shorthand_error({.criterion = "level", .ratio = 0.5, .scope = "local,global"}),
            "command line: criterion \"level\" does not rank channels: name one \"scope\"");
  EXPECT_NE(shorthand_error({.scope = "local,"}), "no error");
}

TEST(Shorthand, APatternSaysHowMuch) {
  EXPECT_EQ(from_shorthand({.criterion = "1:4"}).entries[0].request.ratio, 0.75);
  EXPECT_EQ(
      from_shorthand({.criterion = "sparsegpt:2:4", .ratio = 0.5}).entries[0].request.criterion,
      "sparsegpt:2:4");
  EXPECT_EQ(shorthand_error({.criterion = "2:4", .ratio = 0.6}),
            "command line: criterion \"2:4\" removes a share of 0.5, but the ratio is 0.6");
  EXPECT_EQ(shorthand_error({.criterion = "4:2"}),
            "--criterion: criterion \"4:2\": expected N:M, N of every M elements stay, 1 <= N < M: "
            "\"2:4\", \"sparsegpt:2:4\"");
  EXPECT_EQ(shorthand_error({.criterion = "wanda_elements", .ratio = 0.5, .scope = "global"}),
            "command line: criterion \"wanda_elements\" ranks elements within a matrix; \"scope\" "
            "must be \"local\"");
}

}  // namespace
}  // namespace parsimony
