// Saves and resumes runs.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/serialize/archive.h>

#include <filesystem>
#include <mutex>
#include <sstream>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/run/run.h"

namespace parsimony::training {
namespace {

/// Returns the state of libtorch's generator, which dropout and weight initialisation use.
at::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

ModelError bad_checkpoint(std::string_view path, std::string_view why) {
  return ModelError(path, ": not a checkpoint of this version: ", why);
}

constexpr int64_t kFormat = 2;

c10::List<at::Tensor> values_of(TrainableModel& net) {
  c10::List<at::Tensor> values;
  for (const auto& [name, tensor] : all_tensors(net)) values.push_back(tensor.detach().cpu());
  return values;
}

void set_values(TrainableModel& net, const std::vector<at::Tensor>& values,
                const std::string& path) {
  const at::NoGradGuard no_grad;
  size_t next = 0;
  for (const auto& [name, tensor] : all_tensors(net)) {
    if (next == values.size() || values[next].sizes() != tensor.sizes()) {
      throw bad_checkpoint(path, "\"" + name + "\" has another shape there");
    }
    at::Tensor(tensor).copy_(values[next++]);
  }
}

c10::IValue value_at(torch::serialize::InputArchive& archive, const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return value;
}

/// Adds a key, which a ledger's line requires; the real one is not known yet.
LedgerPoint with_key(LedgerPoint point) {
  point.key = "unfinished";
  return point;
}

}  // namespace

void TrainingRun::save(const std::string& path, const std::string& key) const {
  torch::serialize::OutputArchive archive;
  archive.write("parsimony_checkpoint", c10::IValue(kFormat));
  archive.write("identity", c10::IValue(key));
  archive.write("next", c10::IValue(static_cast<int64_t>(next_)));
  archive.write("shuffle", c10::IValue(shuffle_));
  archive.write("best", c10::IValue(early_stop_.best));
  archive.write("worse", c10::IValue(int64_t{early_stop_.worse}));
  archive.write("point", c10::IValue(to_json_line(with_key(record_.point))));
  archive.write("random", random_state());
  c10::List<std::string> plans;
  c10::List<std::string> plan_values;
  for (const Plan& plan : record_.plans) {
    plans.push_back(plan.to_json());
    plan_values.push_back(plan.has_values() ? plan.values_file() : std::string());
  }
  archive.write("plans", c10::IValue(plans));
  archive.write("plan_values", c10::IValue(plan_values));
  archive.write("values", c10::IValue(values_of(*net_)));
  archive.write("dense", c10::IValue(dense_ ? values_of(*dense_) : c10::List<at::Tensor>()));
  archive.write("search", c10::IValue(c10::List<double>(search_ ? to_numbers(search_->state())
                                                                : std::vector<double>())));
  between_cuts_.save(archive);
  const bool in_stage =
      !done() && steps_[next_].kind == Step::Kind::kEpoch && steps_[next_].epoch > 0;
  archive.write("in_stage", c10::IValue(in_stage));
  if (in_stage) {
    torch::serialize::OutputArchive optimizer(archive.compilation_unit());
    trainer_->optimizer().save(optimizer);
    archive.write("optimizer", optimizer);
    archive.write("scale", c10::IValue(trainer_->scaler().scale()));
    archive.write("good_steps", c10::IValue(trainer_->scaler().good_steps()));
  }
  std::ostringstream out;
  archive.save_to(out);
  write_file(path, out.str());
}

bool TrainingRun::load(const std::string& path, const std::string& key) {
  if (!std::filesystem::exists(path)) return false;
  std::istringstream in(read_file(path));
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(in);
    if (value_at(archive, "parsimony_checkpoint").toInt() != kFormat) {
      throw bad_checkpoint(path, "its version differs");
    }
    if (value_at(archive, "identity").toStringRef() != key) {
      throw ConfigError(
          path,
          ": the checkpoint is from another run: recipe, data or model differ. Remove "
          "it, or pass another one with --checkpoint");
    }
    next_ = value_at(archive, "next").toInt();
    shuffle_ = value_at(archive, "shuffle").toInt();
    early_stop_.best = value_at(archive, "best").toDouble();
    early_stop_.worse = static_cast<int>(value_at(archive, "worse").toInt());
    record_.point = read_ledger_point(value_at(archive, "point").toStringRef(), path);
    record_.point.key.clear();
    const c10::IValue plans = value_at(archive, "plans");
    const c10::IValue plan_values = value_at(archive, "plan_values");
    for (size_t i = 0; i < plans.toListRef().size(); ++i) {
      Plan plan = Plan::from_json(plans.toListRef()[i].toStringRef(), path);
      if (plan.has_values()) plan.read_values(plan_values.toListRef().at(i).toStringRef(), path);
      net_->restore(plan);
      record_.plans.push_back(std::move(plan));
    }
    place(*net_, options_.device, options_.channels_last);
    set_values(*net_, value_at(archive, "values").toTensorVector(), path);
    if (const auto values = value_at(archive, "dense").toTensorVector(); !values.empty()) {
      std::unique_ptr<TrainableModel> dense = net_->clone_architecture();
      set_values(*dense, values, path);
      teach_by(std::move(dense));
    }
    if (const auto state = value_at(archive, "search").toDoubleVector(); !state.empty()) {
      begin_search();
      search_->take_up(to_annealing_state(state));
      if (search_->done()) cuts_.front() = search_->best();
    }
    between_cuts_.load(archive);
    if (value_at(archive, "in_stage").toBool()) {
      begin_stage(steps_.at(next_));
      torch::serialize::InputArchive optimizer;
      archive.read("optimizer", optimizer);
      trainer_->optimizer().load(optimizer);
      trainer_->scaler().take_up(value_at(archive, "scale").toDouble(),
                                 value_at(archive, "good_steps").toInt());
    }
    at::Tensor random;
    archive.read("random", random);
    set_random_state(random);
  } catch (const c10::Error& error) {
    throw bad_checkpoint(path, torch_io::reason_of(error));
  }
  return true;
}

}  // namespace parsimony::training
