#include <cstdio>
#include <memory>

#include "parsimony/cli/command.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/oracle.h"
#include "parsimony/cli/progress.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/report/text.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::cli {
namespace {

std::string brief(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

std::string summary(const OracleVerdict& verdict) {
  using enum Table::Align;
  Table table({"output", "difference", "tolerance"}, {kLeft, kRight, kRight});
  for (const OracleOutput& output : verdict.outputs) {
    table.add({printable(output.name), brief(output.difference), brief(output.tolerance)});
  }
  std::string text = table.text();
  for (const std::string& note : verdict.notes) text += "note: " + printable(note) + "\n";
  const std::string probes = counted(verdict.probes, "random input");
  if (verdict.mixes) {
    return text + coloured("runs", Colour::kGreen, Stream::kOut) + ": finite on " + probes +
           "; a group passes a mixing operator, so that equality is not to be expected\n";
  }
  return text + coloured("exact", Colour::kGreen, Stream::kOut) +
         ": the smaller model equals the original with the removed slices set to zero, on " +
         probes + "\n";
}

void run(const OracleJob& job, const Session& session) {
  Plan::load(job.plan);  // our own message if it is none
  Progress progress({}, !session.quiet);
  progress.begin("ONNX Runtime");
  const OracleVerdict verdict = ask_oracle(job);
  progress.finish();
  if (!verdict.fine) throw errors::differs(verdict.worst);
  if (!session.quiet) print(summary(verdict));
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto job = std::make_shared<OracleJob>();
  CLI::App* command =
      add_command(app, "verify", "Compares a pruned model with its original in ONNX Runtime",
                  "parsimony verify resnet.onnx small.onnx --plan p.json --inputs 8");
  command->add_option("IN.onnx", job->original, "The original")->required()->type_name("");
  command->add_option("OUT.onnx", job->small, "The smaller model")->required()->type_name("");
  command->add_option("--plan", job->plan, "The plan that made it")
      ->required()
      ->type_name("P.json");
  command->add_option("--inputs", job->inputs, "How many random inputs to try")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", job->seed, "Where the random numbers begin (1)")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
  add_input_option(*command, job->specs);
  command->callback([job, &session] { session.run = [job, &session] { run(*job, session); }; });
}

}  // namespace parsimony::cli
