#include "parsimony/base/sha256.h"
#include "parsimony/report/html/shell_impl.h"
#include "parsimony/report/html/tables_impl.h"

namespace parsimony {
namespace {

/// Scripts run only with the page's nonce, and nothing may be fetched from anywhere.
std::string policy(const std::string& nonce) {
  return "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "script-src 'nonce-" +
         nonce +
         "'; style-src 'unsafe-inline'; img-src data:; "
         "base-uri 'none'; form-action 'none'\">\n";
}

}  // namespace

std::string to_html(const HtmlPage& page) {
  // Who writes a string into what the page shows cannot know it: it depends on that string.
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

}  // namespace parsimony
