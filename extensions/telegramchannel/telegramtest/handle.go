package telegramtest

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"
)

var tokenShape = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]{5,}$`)

// ServeHTTP answers one Bot API call, /bot<token>/<method>, or the download of a file.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/file/") {
		s.download(w, r)
		return
	}
	token, method, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	p, err := readParams(r)
	if r.Context().Err() != nil {
		return
	}
	method = strings.ToLower(method)
	call := Call{Method: method, Chat: p.int("chat_id"), At: s.now()}
	fault, faulty := s.faults.take(method, call.Chat)
	s.book.called(call)
	if faulty && fault.instead() {
		s.book.answered(call, fault.Status, fault.describe())
		fault.happen(w, r)
		return
	}
	if fault.Late {
		<-fault.release
	}
	var result any
	var refusal *apiError
	switch {
	case !found || !strings.HasPrefix(r.URL.Path, "/bot") || !tokenShape.MatchString(token):
		refusal = &apiError{code: http.StatusNotFound, description: "Not Found"}
	case err != nil:
		refusal = badRequest("can't parse request: %v", err)
	default:
		result, refusal = s.dispatch(r.Context(), token, method, p)
		s.book.changed() // waiters checked when it arrived
	}
	status, body := encode(result, refusal)
	if refusal != nil {
		s.book.answered(call, refusal.code, refusal.description)
	}
	if faulty && !fault.after(w, r, body) {
		return
	}
	write(w, status, body)
}

func (s *Server) dispatch(ctx context.Context, token, method string, p params) (any, *apiError) {
	s.botMu.RLock()
	b := s.bots[token]
	s.botMu.RUnlock()
	if b == nil {
		return nil, &apiError{code: http.StatusUnauthorized, description: "Unauthorized"}
	}
	if kind := media[method]; kind != "" {
		return s.sendMedia(b, p, kind)
	}
	switch method {
	case "sendlocation", "sendvenue", "sendcontact":
		return s.sendPlace(b, p, strings.TrimPrefix(method, "send"))
	case "sendmediagroup":
		return s.sendMediaGroup(b, p)
	case "getme":
		return b.me(), nil
	case "getupdates":
		return s.getUpdates(ctx, b, p)
	case "sendmessage":
		return s.sendMessage(b, p)
	case "editmessagetext":
		return s.editMessageText(b, p)
	case "editmessagereplymarkup":
		return s.editMessageReplyMarkup(b, p)
	case "answercallbackquery":
		return s.answerCallbackQuery(p)
	case "deletemessage":
		return s.deleteMessage(b, p)
	case "sendchataction":
		return s.sendChatAction(p)
	case "getfile":
		return s.getFile(p)
	case "setmycommands":
		return b.setCommands(p)
	case "getmycommands":
		return b.myCommands(p["language_code"]), nil
	case "getwebhookinfo":
		return b.webhookInfo(), nil
	case "setwebhook":
		return b.setWebhook(p["url"])
	case "deletewebhook":
		return b.setWebhook("")
	}
	return nil, &apiError{code: http.StatusNotFound, description: "Not Found: method not found"}
}

func (s *Server) getUpdates(ctx context.Context, b *bot, p params) (any, *apiError) {
	ask := ask{offset: p.int("offset"), limit: int(p.int("limit"))}
	if ask.limit <= 0 || ask.limit > 100 {
		ask.limit = 100
	}
	if _, given := p["allowed_updates"]; given {
		if err := p.json("allowed_updates", &ask.allowed); err != nil {
			return nil, badRequest("can't parse allowed updates JSON object")
		}
	}
	ask.timeout = time.Duration(min(max(p.int("timeout"), 0), 50)) * time.Second
	updates, refusal := b.poll(ctx, ask, s.book.changed)
	if refusal != nil {
		return nil, refusal
	}
	return updates, nil
}
