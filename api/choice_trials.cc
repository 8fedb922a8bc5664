#include <algorithm>
#include <cmath>
#include <limits>

#include "parsimony/api/choice_trials_impl.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"

namespace parsimony {
namespace {

// Networks that differ by no more than this factor have the same left.
constexpr double kAlike = 1.02;

/// The last error of a recovery, on samples that it did not see, if there are any.
double error_of(const RecoveryReport& report) {
  const RecoveryState& last = report.steps.empty() ? report.before : report.steps.back().after;
  const double error = last.test_error.value_or(last.error);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// Returns how much of what the budget counts the network has left.
double left_of(const Pruning& pruning, Budget budget) {
  if (budget == Budget::kParams || budget == Budget::kWeights) {
    return static_cast<double>(pruning.small.params);
  }
  if (budget != Budget::kChannels) return static_cast<double>(pruning.small.macs);
  double kept = 0;
  for (const std::vector<uint8_t>& keep : pruning.allocation.masks.keep) {
    kept += static_cast<double>(keep.size()) - static_cast<double>(std::ranges::count(keep, 0));
  }
  return kept;
}

Budget budget_of(const ConfigList& config) {
  for (const ConfigEntry& entry : config.entries) {
    if (!entry.exclude && entry.request.has_choice()) return entry.request.budget;
  }
  return Budget::kChannels;
}

}  // namespace

ChoiceTrials::ChoiceTrials(const PruneRequest& request, SharedAnalyses* shared)
    : request_(request), shared_(shared == nullptr ? &own_ : shared) {
  for (const ConfigEntry& entry : request.config.entries) {
    if (entry.exclude) continue;
    criteria_ = std::max(criteria_, entry.request.criteria.size());
    scopes_ = std::max(scopes_, entry.request.scopes.size());
  }
}

bool ChoiceTrials::next() {
  current_ = current_ ? *current_ + 1 : 0;
  if (*current_ % scopes_ == 0) apart_ = {};
  if (*current_ < criteria_ * scopes_) return true;
  if (!least_) {
    throw UnsupportedError("no criterion can be used: ", listed(left_out_, left_out_.size()));
  }
  return false;
}

const std::string& ChoiceTrials::criterion_of(const Request& request) const {
  const std::vector<std::string>& all = request.criteria;
  return all.empty() ? request.criterion : all[std::min(*current_ / scopes_, all.size() - 1)];
}

Scope ChoiceTrials::scope_of(const Request& request) const {
  const std::vector<Scope>& all = request.scopes;
  return all.empty() ? request.scope : all[std::min(*current_ % scopes_, all.size() - 1)];
}

PruneRequest ChoiceTrials::request_of(bool together) const {
  PruneRequest one = request_;
  for (ConfigEntry& entry : one.config.entries) {
    Request& request = entry.request;
    request.criterion = criterion_of(request);
    request.scope = scope_of(request);
    request.scopes.clear();
    if (!together) request.criteria.clear();
  }
  return one;
}

void ChoiceTrials::plan(
    const std::function<void(const PruneRequest& one, SharedAnalyses* shared)>& plan) {
  if (together_) {
    try {
      plan(request_of(true), shared_);
      return;
    } catch (const ConfigError&) {
      throw;
    } catch (const Error&) {  // perhaps of another criterion's statistics
      together_ = false;
    }
  }
  plan(request_of(false), &apart_);
}

void ChoiceTrials::leave(const std::string& why) { left_out_.push_back(name() + " (" + why + ")"); }

bool ChoiceTrials::repeats(const Pruning& pruning) {
  const auto known = std::ranges::find(plans_, pruning.plan, &std::pair<std::string, Plan>::second);
  if (known == plans_.end()) return false;
  tried_.push_back({name() + " as " + known->first, 0});
  add_times(pruning);
  return true;
}

void ChoiceTrials::add_times(const Pruning& pruning) {
  for (const StageTime& time : pruning.times) {
    const auto known = std::ranges::find(times_, time.stage, &StageTime::stage);
    if (known == times_.end()) {
      times_.push_back(time);
    } else {
      known->seconds += time.seconds;
      known->samples += time.samples;
    }
  }
}

bool ChoiceTrials::add(const Pruning& pruning, const std::optional<Recovered>& recovered) {
  add_times(pruning);
  plans_.emplace_back(name(), pruning.plan);
  const double error =
      recovered ? error_of(recovered->report) : std::numeric_limits<double>::infinity();
  const double left = left_of(pruning, budget_of(request_.config));
  const bool more = least_ && left > kAlike * left_;
  const bool less = !least_ || kAlike * left < left_;
  tried_.push_back({name() + formatted(" %.4f", error), left});
  if (more || (!less && error >= *least_)) return false;
  least_ = error;
  left_ = left;
  best_ = name();
  return true;
}

std::string ChoiceTrials::note() const {
  std::vector<std::string> texts;
  for (const auto& [text, left] : tried_) {
    texts.push_back(text + (left > kAlike * left_ ? " (removes less)" : ""));
  }
  std::string text =
      "criterion " + best_ + " has the smallest output error: " + listed(texts, texts.size());
  if (!left_out_.empty()) text += "; left out: " + listed(left_out_, left_out_.size());
  return text;
}

std::string ChoiceTrials::name() const {
  std::vector<std::string> names;
  for (const ConfigEntry& entry : request_.config.entries) {
    const Request& request = entry.request;
    if (entry.exclude || !request.has_choice()) continue;
    std::string name = criterion_of(request);
    if (!request.scopes.empty()) (name += ' ') += name_of(scope_of(request));
    if (!contains(names, name)) names.push_back(std::move(name));
  }
  return listed(names, names.size());
}

}  // namespace parsimony
