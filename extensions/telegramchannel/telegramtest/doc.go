// Package telegramtest is a Telegram Bot API server for tests and benchmarks.
// It listens on loopback, serves the methods that a text bot needs (getMe,
// getUpdates, sendMessage, editMessageText, deleteMessage, sendChatAction,
// setMyCommands, getMyCommands, getWebhookInfo, setWebhook, deleteWebhook) and
// enforces the rules of the real service, with its error codes and texts.
//
// # Rules
//
//   - the token: 404 for one that cannot be a token, 401 for an unknown one;
//   - texts: 4096 UTF-16 units after entity parsing, not empty after trimming,
//     HTML, MarkdownV2 and explicit entities parsed and refused as Telegram does;
//   - chats: "chat not found" for one that never wrote, 403 for a bot that was
//     blocked or kicked, "message thread not found" for an unknown topic;
//   - updates: offset, limit, timeout and allowed_updates; an update is returned
//     again until a higher offset confirms it; a second getUpdates ends the
//     first with 409, and so does a webhook;
//   - with [WithLimits]: the rates per chat, per group and per bot, for messages
//     and edits, refused with 429 and retry_after, on the clock of [WithClock].
//
// Rate limits are off by default, so that other tests need not wait. Everything else
// cannot be switched off.
//
// # Differences from Telegram
//
// Media are never downloaded; message ids count per chat; the legacy
// "Markdown" parse mode, inline keyboards and delivery to webhooks are not
// supported; HTML and MarkdownV2 cover the tags and marks that a text bot uses.
// Telegram drops some invalid entities silently; this server refuses them, so
// that a test fails.
//
// # Concurrency
//
// All methods of [Server] may be called from any goroutine. Waiting is driven
// by channels, never by polling. Messages of one chat are in the order of their
// acceptance; there is no order between chats. [Server.Close]
// ends every open request; [Start] calls it when the test ends.
package telegramtest
