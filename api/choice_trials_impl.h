// Criteria and scopes compared by the small networks that they give.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/prune_impl.h"
#include "parsimony/api/prune_request.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

/// Plans with each criterion of the request in each scope; entries that name fewer stay with their
/// last ones. Statistics for all of them are measured in one pass, where the network can have all
/// of them.
class ChoiceTrials {
 public:
  /// The request must outlive this. @param shared  analyses to use and extend; may be null
  ChoiceTrials(const PruneRequest& request, SharedAnalyses* shared);

  /// Begins the trial of the next choice. @returns false after the last
  /// @throws UnsupportedError if all were left out
  bool next();
  /// Calls `plan` with a request of this trial. @throws what it throws
  void plan(const std::function<void(const PruneRequest& one, SharedAnalyses* shared)>& plan);
  /// Leaves this choice out.
  void leave(const std::string& why);
  /// Returns whether an earlier choice gave this plan; the trial then ends.
  bool repeats(const Pruning& pruning);
  /// Ends the trial. @param recovered  the network's errors; empty if nothing was pruned
  /// @returns whether it is the best so far: of the networks that have least left of what the
  /// budget counts, by more than a rounding, the nearest one
  bool add(const Pruning& pruning, const std::optional<Recovered>& recovered);

  const std::vector<StageTime>& times() const { return times_; }  ///< of all trials
  std::string note() const;  ///< which choice was best, and the errors of all

 private:
  const std::string& criterion_of(const Request& request) const;  ///< in this trial
  Scope scope_of(const Request& request) const;
  void add_times(const Pruning& pruning);
  /// @param together  other criteria stay in the request, so that theirs are measured as well
  PruneRequest request_of(bool together) const;
  /// Returns the choice of this trial, "obs" or "obs global", or those that entries have in it.
  std::string name() const;

  const PruneRequest& request_;
  size_t criteria_ = 1;  ///< the most that an entry names
  size_t scopes_ = 1;
  SharedAnalyses own_;
  SharedAnalyses apart_;  ///< of the present criteria alone
  SharedAnalyses* const shared_;
  bool together_ = true;  ///< statistics of all criteria are measured in one pass
  std::optional<size_t> current_;
  std::optional<double> least_;
  std::string best_;
  std::vector<std::pair<std::string, double>> tried_;  ///< with the error, and what is left
  std::vector<std::pair<std::string, Plan>> plans_;
  double left_ = 0;  ///< of the best
  std::vector<std::string> left_out_;
  std::vector<StageTime> times_;
};

}  // namespace parsimony
