#include "tests/structure/pages/declarations.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace lathe::test {

namespace {

std::string stripped(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

void append(std::string& text, const std::string& more) {
  if (!text.empty() && !more.empty()) text += ' ';
  text += more;
}

/// Returns the position of a line's comment outside of strings; npos if there is none.
std::size_t comment_start(const std::string& line) {
  bool quoted = false;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if (!quoted && line[i] == '/' && line[i + 1] == '/') return i;
  }
  return std::string::npos;
}

/// Returns the start of a function's declaration up to its name: "std::vector<Tensor>".
std::string result_type(const std::string& code) {
  const std::string head = code.substr(0, code.find('('));
  return head.substr(0, std::min(head.rfind(' '), head.size()));
}

/// Collects the code of a declaration line by line, without bodies of functions.
class Collector {
 public:
  bool is_empty() const { return code_.empty(); }
  const std::string& code() const { return code_; }
  void clear() { *this = {}; }

  /// Adds a line. Returns whether the declaration is complete.
  bool add(const std::string& line) {
    if (!code_.empty() && !code_.ends_with("(")) put(' ');
    for (std::size_t i = 0; i < line.size(); ++i)
      if (add(line[i], stripped(line.substr(i + 1)))) return true;
    return false;
  }

 private:
  void put(char c) {
    if (!is_body_) code_ += c;
  }

  bool add(char c, const std::string& rest) {
    if (c == '"') quoted_ = !quoted_;
    if (quoted_ || c == '"') return put(c), false;
    if (c == '(') ++parens_;
    if (c == ')') --parens_, is_function_ = is_function_ || (parens_ == 0 && braces_ == 0 && !has_value_);
    if (c == '=' && parens_ == 0 && braces_ == 0 && !names_operator()) has_value_ = true;
    if (c == '{' && braces_++ == 0 && is_function_ && !has_value_ && parens_ == 0) is_body_ = true;
    if (c == '}') {
      put(c);
      if (--braces_ > 0 || parens_ > 0) return false;
      const bool ends = is_body_ && (rest.empty() || (rest[0] != ',' && rest[0] != '{'));
      is_body_ = false;
      return ends;
    }
    if (c == ';' && parens_ == 0 && braces_ == 0) return true;
    put(c);
    return false;
  }

  /// Whether the code ends in the name of an operator: "operator=".
  bool names_operator() const {
    const auto at = code_.rfind("operator");
    return at != std::string::npos && code_.find_first_of("( ", at) == std::string::npos;
  }

  std::string code_;
  int parens_ = 0, braces_ = 0;
  bool quoted_ = false, is_function_ = false, has_value_ = false, is_body_ = false;
};

struct Scope {
  enum class Kind { space, type, enumeration };
  Kind kind;
  std::string name;     ///< "lathe", "nn", "nn::Linear"
  bool is_reachable;    ///< it is in no detail namespace or private type
  bool is_open = true;  ///< the access of its next declaration is public or protected
};

class Reader {
 public:
  explicit Reader(const SourceFile& header) {
    for (const std::string& line : header.lines) read(stripped(line));
  }

  HeaderText result;

 private:
  void read(const std::string& line) {
    if (code_.is_empty() && read_outside(line)) return;
    const std::size_t at = comment_start(line);
    const std::string comment = at == std::string::npos ? "" : line.substr(at);
    if (comment.starts_with("///< ")) append(trailing_, comment.substr(5));
    const std::string text = stripped(line.substr(0, at));
    if (scopes_.size() > 0 && scopes_.back().kind == Scope::Kind::enumeration) return read_enumerator(text);
    if (code_.is_empty() && opens_scope(text)) return;
    if (code_.add(text)) finish();
  }

  /// Reads a line between declarations. Returns false for code.
  bool read_outside(const std::string& line) {
    static const std::regex access("(public|protected|private):");
    if (line.starts_with("///< ")) {
      append(result.declarations.back().doc, line.substr(5));
    } else if (line.starts_with("///")) {
      if (!line.starts_with("///   ")) append(doc_, stripped(line.substr(3)));
    } else if (line.starts_with("// ---- ")) {
      add({.kind = Declaration::Kind::heading, .owner = owner(), .doc = line.substr(8)});
    } else if (line.empty()) {
      doc_.clear(), follows_ = false;
    } else if (std::regex_match(line, access)) {
      scopes_.back().is_open = line != "private:";
      follows_ = false;
    } else if (line.starts_with("}")) {
      scopes_.pop_back();
      follows_ = false;
    } else if (!line.starts_with("//") && !line.starts_with("#")) {
      return false;
    }
    return true;
  }

  bool opens_scope(const std::string& text) {
    static const std::regex space("namespace ([\\w:]+) \\{"),
        type("(?:class|struct) (\\w+)(?: final)?(?: : .*)? \\{"),
        enumeration("enum(?: class)? (\\w+)(?: : [\\w:]+)? \\{(.*)");
    std::smatch match;
    if (std::regex_match(text, match, space)) {
      const std::string path = match[1];
      if (path != "detail") append(result.doc, doc_);
      const std::string inner = path.starts_with("lathe::") ? path.substr(7) : path == "lathe" ? "" : path;
      scopes_.push_back({Scope::Kind::space, inner, path != "detail" && path != "lathe::detail" && is_open()});
    } else if (std::regex_match(text, match, type)) {
      add_type(match[1], text.substr(0, text.size() - 2));
      scopes_.push_back({Scope::Kind::type, qualified(match[1]), is_open()});
    } else if (std::regex_match(text, match, enumeration)) {
      add_type(match[1], "enum " + match[1].str());
      scopes_.push_back({Scope::Kind::enumeration, qualified(match[1]), is_open()});
      if (const std::string rest = match[2]; !rest.empty()) read_enumerator(rest), scopes_.pop_back();
    } else {
      return false;
    }
    doc_.clear(), trailing_.clear(), follows_ = false;
    return true;
  }

  void read_enumerator(const std::string& text) {
    static const std::regex name("(\\w+)(?: = [^,]+)?,?");
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
      add({.kind = Declaration::Kind::enumerator, .owner = owner(), .name = (*at)[1], .code = (*at)[1]});
  }

  void add_type(const std::string& name, const std::string& code) {
    add({.kind = Declaration::Kind::type, .owner = owner(), .name = qualified(name), .code = code});
  }

  void finish() {
    const std::string code = stripped(code_.code());
    code_.clear();
    static const std::regex skipped("(?:class|struct|friend class) [\\w:]+|using [\\w:]+|.*= (?:default|delete)");
    if (!std::regex_match(code, skipped)) {
      add({.kind = Declaration::Kind::member, .owner = owner(), .code = code});
    } else {
      doc_.clear(), trailing_.clear(), follows_ = false;
    }
  }

  /// Adds a declaration with the comments that were read.
  void add(Declaration declaration) {
    const bool has_doc = !doc_.empty() || !trailing_.empty();
    append(declaration.doc, doc_);
    append(declaration.doc, trailing_);
    const bool is_member = declaration.kind == Declaration::Kind::member;
    declaration.shares_doc = follows_ && !has_doc && is_member &&
                             result_type(declaration.code) == result_type(result.declarations.back().code);
    follows_ = is_member && is_open() && (!doc_.empty() || declaration.shares_doc);
    doc_.clear(), trailing_.clear();
    if (is_open()) result.declarations.push_back(std::move(declaration));
  }

  bool is_open() const { return scopes_.empty() || (scopes_.back().is_reachable && scopes_.back().is_open); }
  std::string owner() const { return scopes_.empty() ? "" : scopes_.back().name; }
  std::string qualified(const std::string& name) const { return owner().empty() ? name : owner() + "::" + name; }

  std::vector<Scope> scopes_;
  Collector code_;
  std::string doc_, trailing_;
  bool follows_ = false;  ///< the next line directly follows a declaration with a doc comment above it
};

}  // namespace

HeaderText declarations_of(const SourceFile& header) { return Reader(header).result; }

}  // namespace lathe::test
