// The points of one or many ledgers, compared: what a report shows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/report/ledger.h"

namespace parsimony {

/// A quantity over the seeds of one setting.
struct Spread {
  double mean = 0;
  double low = 0;  ///< of the seeds; no estimate of an interval is made of so few
  double high = 0;
};

/// A point, and what it is compared with.
struct SweepRow {
  LedgerPoint point;
  std::string series;                   ///< the criterion or "dense", and what tells runs apart
  std::optional<size_t> dense;          ///< row of the dense network of the same run and seed
  LedgerPoint::Score reference;         ///< the dense one's; without it, the own before pruning
  double change = 0;                    ///< of accuracy, in shares of 1, from raw counts; dense: 0
  std::optional<double> train_speedup;  ///< dense seconds over own; only with a dense network
};

/// All seeds of one series at one sparsity.
struct SweepSetting {
  std::string series;
  std::string run;  ///< what was trained on what; settings of different runs do not compare
  double sparsity = 0;
  std::vector<size_t> rows;
  Spread params;  ///< after pruning
  Spread macs;
  double macs_ratio = 1;  ///< before over after, the mean
  Spread accuracy;        ///< 0..1
  Spread change;
  Spread seconds;  ///< of training
  std::optional<Spread> train_speedup;
  LedgerPoint::Phases phases;  ///< of training, the mean
  bool front = false;          ///< no other setting of its run is as fast and more accurate
};

/// A line of the headline.
struct Headline {
  std::string what;    ///< "parameters"
  std::string before;  ///< "2,122,186"
  std::string after;
  std::string ratio;  ///< "2.00×"; for accuracy "−1.18 points"; "–" where there is none
  std::string note;   ///< what the numbers hold for, if that needs saying
};

struct SweepReport {
  std::string title;
  std::vector<SweepRow> rows;  ///< by series, sparsity and seed, in whatever order they finished
  std::vector<SweepSetting> settings;
  size_t selected = 0;           ///< row of the headline
  std::string selected_name;     ///< "l1 at 50%, seed 0 (the middle one of 3)"
  std::string selected_because;  ///< "the smallest network that …"
  std::vector<Headline> headline;
  std::vector<std::string> notes;
};

/// Compares the points. The headline is of the smallest network that loses at most one point of
/// accuracy (the middle one of its seeds); where none is as good, of the one nearest to 50%.
/// @param title empty: made of the names of model and data
/// @throws ModelError if there is no point
SweepReport summarise(LedgerContent content, std::string title = {});

/// One object: {"parsimony_sweep": 1, "title": …, "selected": …, "settings": […], "points": […]}.
std::string to_json(const SweepReport& report);

/// What the charts of the page are drawn from: part of the same object.
std::string chart_json(const SweepReport& report);

/// One line per point, after a line of names.
std::string to_csv(const SweepReport& report);

std::string to_markdown(const SweepReport& report);

}  // namespace parsimony
