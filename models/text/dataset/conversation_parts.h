#pragma once

#include <memory>
#include <optional>

#include "models/text/chat/chat_template.h"
#include "models/text/template/partial/partial_renders.h"

namespace lathe {

/// Options for rendering parts of a conversation.
struct PartOptions {
  /// Reuse results from the render of the whole conversation. Without reuse, the output is the same, but each part
  /// costs a full render.
  bool reuse = true;
  /// Work limit of all renders together, as a multiple of RenderLimits::work. The default allows several seconds.
  std::uint64_t work_factor = 4;
  std::uint64_t* work = nullptr;  ///< set to the work of all renders
};

/// Renders a conversation and parts of it.
class ConversationParts {
 public:
  /// Renders the whole conversation. Throws UserErrors of ChatTemplate::render(). `chat` and `messages` must outlive
  /// this.
  ConversationParts(const ChatTemplate& chat, const jinja::Value& messages, const ChatOptions& options,
                    const PartOptions& part_options);

  const jinja::Rendered& whole() const { return partial_ ? partial_->whole() : whole_; }
  /// Returns the text of the first `count` messages; nullopt if the template fails for them. Throws UserError
  /// [chat_spans_work] if all renders together exceed the work limit.
  std::optional<jinja::TextPieces> first(std::size_t count, bool add_prompt);
  /// Returns the same text with the content of message `at` replaced.
  std::optional<jinja::TextPieces> with_content(std::size_t count, bool add_prompt, std::size_t at,
                                                const std::string& content);
  /// Adds work that is not part of a render.
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
