#include "parsimony/report/html/page.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/hash.h"
#include "parsimony/report/html/tables_impl.h"
#include "parsimony/report/html/texts_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {
namespace {

/// The parts of a page: one file that fetches nothing and runs only its own scripts.
struct HtmlPage {
  std::string title;
  std::string_view style;
  std::string body;                       ///< markup
  std::string data_id;                    ///< id of the element with `data`
  std::string data;                       ///< JSON
  std::vector<std::string_view> scripts;  ///< if empty, the data are omitted, too
};

/// Returns a policy with which only scripts with the page's nonce run and nothing is fetched.
std::string policy(const std::string& nonce) {
  return "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "script-src 'nonce-" +
         nonce +
         "'; style-src 'unsafe-inline'; img-src data:; "
         "base-uri 'none'; form-action 'none'\">\n";
}

std::string to_html(const HtmlPage& page) {
  // Strings shown on the page cannot contain the nonce, which depends on them.
  const std::string nonce = sha256(page.body + page.data).substr(0, 32);
  std::string text = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
                     policy(nonce) +
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<title>" +
                     escaped(page.title) + "</title>\n<style>\n" + std::string(page.style) +
                     "</style>\n</head>\n<body>\n" + page.body;
  if (!page.scripts.empty()) {
    text += "<script type=\"application/json\" id=\"" + page.data_id + "\">" +
            script_safe(page.data) + "</script>\n";
  }
  for (const std::string_view script : page.scripts) {
    text += "<script nonce=\"" + nonce + "\">\n" + std::string(script) + "</script>\n";
  }
  return text + "</body>\n</html>\n";
}

std::string paragraph(std::string_view text, std::string_view kind = {}) {
  const std::string attribute =
      kind.empty() ? std::string() : " class=\"" + std::string(kind) + "\"";
  return "<p" + attribute + ">" + escaped(text) + "</p>\n";
}

std::string section(const char* id, const char* title, const std::string& content) {
  const std::string name = id;
  return "<section aria-labelledby=\"" + name + "-title\">\n<h2 id=\"" + name + "-title\">" +
         title + "</h2>\n" + content + "</section>\n";
}

/// Renders a chart, its caption, and its numbers as an accessible table.
std::string figure(const char* id, const char* title, const char* caption,
                   const std::string& table) {
  const std::string name = id;
  std::string text = "<figure class=\"" + name + "\">\n<h3>" + title + "</h3>\n";
  if (has_charts()) {
    text += "<figcaption>" + std::string(caption) +
            "</figcaption>\n<div class=\"chart\" id=\"chart-" + name + "\"></div>\n<details>";
  } else {
    text += "<details open>";
  }
  return text + "<summary>The numbers</summary>\n" + table + "</details>\n</figure>\n";
}

std::string lead(const SweepReport& report) {
  std::set<std::string> criteria;
  std::set<uint64_t> seeds;
  for (const SweepRow& row : report.rows) {
    if (row.point.sparsity > 0) criteria.insert(row.point.criterion);
    seeds.insert(row.point.seed);
  }
  const LedgerPoint& point = report.rows[report.selected].point;
  std::string text = point.model.name + " on " + point.data.name + ": " +
                     counted(std::ssize(report.rows), "network") + " trained";
  if (!criteria.empty()) {
    text += ", " + std::to_string(criteria.size()) +
            (criteria.size() == 1 ? " criterion" : " criteria");
  }
  return text + ", " + counted(std::ssize(seeds), "seed") + ".";
}

std::string header(const SweepReport& report) {
  std::string text = "<header>\n<p class=\"brand\">Parsimony report</p>\n<h1>" +
                     escaped(report.title) + "</h1>\n" + paragraph(lead(report), "lead");
  if (!report.notes.empty()) {
    text += "<ul class=\"notes\">\n";
    for (const std::string& note : report.notes) text += "<li>" + escaped(note) + "</li>\n";
    text += "</ul>\n";
  }
  return text + "</header>\n";
}

std::string cards(const SweepReport& report) {
  std::string text =
      paragraph(report.selected_name + ": " + report.selected_because + ".", "because") +
      "<ul class=\"cards\">\n";
  for (const Headline& line : report.headline) {
    text += "<li><h3>" + escaped(line.what) + "</h3><p class=\"ratio\">" + escaped(line.ratio) +
            "</p><p class=\"change\"><span class=\"hidden\">before </span>" + escaped(line.before) +
            "<span aria-hidden=\"true\"> → </span><span class=\"hidden\">, after </span><strong>" +
            escaped(line.after) + "</strong></p><p class=\"note\">" + escaped(line.note) +
            "</p></li>\n";
  }
  return section("headline", "Before and after", text + "</ul>\n");
}

std::string charts(const SweepReport& report) {
  std::string text;
  if (!has_charts()) {
    text = paragraph(
        "This Parsimony was built without its chart library, so the page has tables only.",
        "notes");
  }
  text += "<div class=\"figures\">\n";
  text += figure("front", "Accuracy against training time",
                 "Large marks are means over seeds, small ones single runs. No setting is both "
                 "faster and more accurate than those on the line, the Pareto front.",
                 front_table(report));
  text += figure("accuracy", "Accuracy against sparsity",
                 "Lines are means over seeds, bands reach from the lowest to the highest seed. "
                 "The dashed line is the dense network.",
                 accuracy_table(report));
  if (has_speedup(report)) {
    text += figure("speedup", "Training speedup against sparsity",
                   "Dense training time over pruned training time, of the same seed; bands from "
                   "lowest to highest. Dashed: the ratio of multiply-adds.",
                   speedup_table(report));
  }
  text += figure("time", "Where the training time goes",
                 "Seconds of all epochs after pruning, means over seeds.", time_table(report));
  text += "</div>\n";
  return section("charts", "What pruning costs and gains", text);
}

std::string settings(const SweepReport& report) {
  return section("settings", "All settings",
                 paragraph("Means over seeds. The change of accuracy is against the dense network "
                           "of the same seed, from raw counts.",
                           "because") +
                     settings_table(report) + "<details><summary>All points</summary>\n" +
                     points_table(report) + "</details>\n");
}

std::string proof_text(const LedgerPoint& point) {
  if (!point.proof) return paragraph("Nothing was pruned, so there is nothing to prove.");
  const LedgerPoint::Evidence& proof = *point.proof;
  if (!proof.ran) {
    return "<p class=\"verdict open\"><strong>Not proven</strong> " + escaped(proof.reason) +
           "</p>\n";
  }
  return std::string("<p class=\"verdict ") + (proof.holds() ? "good" : "bad") + "\"><strong>" +
         (proof.holds() ? "Proven" : "Differs") +
         "</strong> The small network's outputs differ by " + scientific_text(proof.difference) +
         " of the largest value (allowed: " + scientific_text(proof.tolerance) + ") from " +
         escaped(proof.against) + ".</p>\n";
}

std::string network(const SweepReport& report) {
  const LedgerPoint& point = report.rows[report.selected].point;
  std::string text = paragraph(report.selected_name + ".", "because");
  if (!point.layers.empty()) {
    text += figure("layers", "Channels per layer",
                   "Wide and pale: before. Narrow and strong: after.", layers_table(point));
  }
  text += "<h3>The proof</h3>\n" + proof_text(point);
  if (!point.unpruned_dims.empty()) {
    text += "<h3>Not pruned, and why</h3>\n" + unpruned_table(point);
  }
  return section("network", "The network of the headline", text);
}

/// Renders the output and the picture of a metric's command for a network.
std::string example(const char* when, const LedgerPoint::Metric& metric) {
  std::string text =
      "<figure>\n<h4>" + std::string(when) + ": " + escaped(metric_text(metric.value)) + "</h4>\n";
  if (!metric.picture.empty()) {
    text += "<img src=\"" + escaped(metric.picture) + "\" alt=\"What " + escaped(metric.name) +
            " drew\">\n";
  }
  if (!metric.output.empty()) text += "<pre>" + escaped(metric.output) + "</pre>\n";
  return text + "</figure>\n";
}

const LedgerPoint::Metric* shown(const LedgerPoint& point, const std::string& name) {
  const auto found = std::ranges::find(point.metrics, name, &LedgerPoint::Metric::name);
  const bool there = found != point.metrics.end();
  return there && !(found->output.empty() && found->picture.empty()) ? &*found : nullptr;
}

std::string examples(const SweepReport& report) {
  const SweepRow& row = report.rows[report.selected];
  std::string text;
  for (const std::string& name : report.metrics) {
    const LedgerPoint::Metric* after = shown(row.point, name);
    if (after == nullptr) continue;
    const LedgerPoint::Metric* before =
        row.dense ? shown(report.rows[*row.dense].point, name) : nullptr;
    text += "<h3>" + escaped(name) + "</h3>\n<div class=\"figures\">\n";
    if (before != nullptr) text += example("Dense", *before);
    text += example("Pruned", *after) + "</div>\n";
  }
  if (text.empty()) return "";
  return section("examples", "Examples", paragraph(report.selected_name + ".", "because") + text);
}

std::string again(const SweepReport& report) {
  const LedgerPoint& point = report.rows[report.selected].point;
  std::string text = "<p>The command:</p>\n<pre><code>" + escaped(point.command) +
                     "</code></pre>\n" + facts_table(report) +
                     "<details><summary>The configuration</summary>\n<pre><code>" +
                     escaped_config(point) + "</code></pre></details>\n";
  return section("again", "Run it again", text);
}

}  // namespace

bool has_charts() { return !chart_library().empty(); }

std::string to_html(const SweepReport& report) {
  HtmlPage page;
  page.title = report.title;
  page.style = page_style();
  page.body = header(report) + "<main>\n" + cards(report) + charts(report) + settings(report) +
              network(report) + examples(report) + again(report) +
              "</main>\n<footer>Made by Parsimony. Opens offline; fetches nothing.</footer>\n";
  if (has_charts()) {
    page.data_id = "chart-data";
    page.data = chart_json(report);
    page.scripts = {chart_library(), page_script()};
  }
  return to_html(page);
}

std::string to_html(const NetworkPicture& picture) {
  HtmlPage page;
  page.title = picture.model + " – Parsimony";
  page.style = network_style();
  page.body = std::string(network_body());
  page.data_id = "network-data";
  page.data = to_json(picture);
  const std::string script =
      "'use strict';\n(() => {\n" + std::string(network_script()) + "})();\n";
  page.scripts = {script};
  return to_html(page);
}

}  // namespace parsimony
