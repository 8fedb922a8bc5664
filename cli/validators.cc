#include "parsimony/cli/validators.h"

#include <functional>

namespace parsimony::cli {
namespace {

CLI::Validator number_that(const std::function<bool(double)>& holds, const std::string& wanted) {
  return {[=](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && holds(value);
            return fits ? std::string() : "found \"" + text + "\", wanted a number " + wanted;
          },
          ""};
}

}  // namespace

CLI::Validator above_zero() {
  return number_that([](double x) { return x > 0; }, "above 0");
}

CLI::Validator not_below_zero() {
  return number_that([](double x) { return x >= 0; }, "not below 0");
}

CLI::Validator within(const Interval& interval) {
  return number_that([=](double x) { return interval.contains(x); }, "in " + interval.text());
}

}  // namespace parsimony::cli
