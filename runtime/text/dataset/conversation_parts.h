#pragma once

#include <memory>
#include <optional>

#include "runtime/text/chat/chat_template.h"
#include "runtime/text/template/partial/partial_renders.h"

namespace lathe {

/// How the parts of a conversation are rendered.
struct PartOptions {
  /// Reuse results of the render of the whole conversation. Without reuse the texts are the same, and each takes the
  /// time of a whole render.
  bool reuse = true;
  /// The work that all renders together may do, as a multiple of RenderLimits::work: several seconds.
  std::uint64_t work_factor = 4;
  std::uint64_t* work = nullptr;  ///< set to the work of all renders
};

/// The text of a conversation, and of parts of it.
class ConversationParts {
 public:
  /// Renders the whole conversation. Throws UserErrors of ChatTemplate::render(). `chat` and `messages` outlive this.
  ConversationParts(const ChatTemplate& chat, const jinja::Value& messages, const ChatOptions& options,
                    const PartOptions& part_options);

  const jinja::Rendered& whole() const { return partial_ ? partial_->whole() : whole_; }
  /// Returns the text of the first messages; nothing if the template fails for them. Throws UserError
  /// [chat_spans_work] if all renders together do too much work.
  std::optional<jinja::TextPieces> first(std::size_t count, bool add_prompt);
  /// The same, with another content of message `at`.
  std::optional<jinja::TextPieces> with_content(std::size_t count, bool add_prompt, std::size_t at,
                                                const std::string& content);
  /// Counts work that is not part of a render.
  void spend(std::uint64_t work);

 private:
  using Part = jinja::PartialRenders::Part;
  std::optional<jinja::TextPieces> render(const Part& part);
  jinja::TextPieces render_again(const Part& part);

  const ChatTemplate& chat_;
  const jinja::Value& messages_;
  ChatOptions options_;
  PartOptions part_options_;
  std::uint64_t work_ = 0;  ///< of renders without reuse, and of spend()
  jinja::Rendered whole_;
  std::unique_ptr<jinja::PartialRenders> partial_;  ///< null without reuse
};

}  // namespace lathe
