package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// refusal is an answer with ok=false.
type refusal struct {
	code       string
	messages   []string // what is wrong, for invalid_blocks
	retryAfter int      // seconds; then the status is 429
}

func refuse(code string) *refusal { return &refusal{code: code} }

// answer writes the answer of a method.
func answer(w http.ResponseWriter, result any, bad *refusal) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	status, body := encode(result, bad)
	if bad != nil && bad.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(bad.retryAfter))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func encode(result any, bad *refusal) (status int, body []byte) {
	status = http.StatusOK
	all := map[string]any{"ok": bad == nil}
	if bad != nil {
		all["error"] = bad.code
		if len(bad.messages) > 0 {
			all["errors"] = bad.messages
			all["response_metadata"] = map[string]any{"messages": bad.messages}
		}
		if bad.retryAfter > 0 {
			status = http.StatusTooManyRequests
		}
	} else if fields, ok := result.(map[string]any); ok {
		maps.Copy(all, fields)
	}
	body, err := json.Marshal(all)
	if err != nil {
		return http.StatusOK, []byte(`{"ok":false,"error":"internal_error"}`)
	}
	return status, body
}

// ServeHTTP answers a call of the Web API, a transfer of a file, or a WebSocket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/socket":
		s.serveSocket(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.transfer(w, r, "upload", s.upload)
		return
	case strings.HasPrefix(r.URL.Path, "/files/"):
		s.transfer(w, r, "download", s.download)
		return
	}
	method, known := strings.CutPrefix(r.URL.Path, "/api/")
	p, err := params(r)
	if r.Context().Err() != nil {
		return
	}
	channel := p.Get("channel")
	s.called(method)
	f, release, faulty := s.fault(method, channel)
	if faulty && f.instead() {
		s.note(method, channel, f.describe())
		f.happen(w, r, release)
		return
	}
	var result any
	var bad *refusal
	switch {
	case !known:
		bad = refuse("unknown_method")
	case err != nil:
		bad = refuse("invalid_form_data")
	default:
		result, bad = s.dispatch(r, method, p)
	}
	if bad != nil {
		s.note(method, channel, bad.code+" "+strings.Join(bad.messages, "; "))
	}
	if faulty {
		_, body := encode(result, bad)
		if f.Break == PauseInsideAnswer {
			pause(r.Context(), w, body, release)
		} else {
			s.note(method, channel, f.describe())
			reset(w)
		}
		return
	}
	answer(w, result, bad)
}

// transfer uploads or downloads a file, with the faults of this.
func (s *Server) transfer(w http.ResponseWriter, r *http.Request, kind string,
	do func(http.ResponseWriter, *http.Request, <-chan struct{}),
) {
	s.called(kind)
	f, release, faulty := s.fault(kind, "")
	if faulty && f.instead() {
		s.note(kind, "", f.describe())
		f.happen(w, r, release)
		return
	}
	do(w, r, release)
}

func (f Fault) describe() string {
	switch {
	case f.Error != "":
		return f.Error
	case f.Hang:
		return "hung"
	case f.Status != 0:
		return fmt.Sprint("status ", f.Status)
	}
	return "connection reset"
}

// params reads the parameters of a call, as a form or as JSON.
func params(r *http.Request) (url.Values, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		err := r.ParseForm()
		return r.Form, err
	}
	values, fields := url.Values{}, map[string]json.RawMessage{}
	if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
		return values, nil //nolint:nilerr // no body
	}
	for name, raw := range fields {
		text := ""
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		values.Set(name, text)
	}
	return values, nil
}

// token returns the token of a request.
func token(r *http.Request) string {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return bearer
	}
	return r.FormValue("token")
}

// authorize refuses a token that is unknown, revoked, or of the wrong kind.
func (s *Server) authorize(token, kind string) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, known := s.tokens[token]
	switch {
	case token == "":
		return refuse("not_authed")
	case !known:
		return refuse("invalid_auth")
	case why != "":
		return refuse(why)
	case !strings.HasPrefix(token, kind):
		return refuse("not_allowed_token_type")
	}
	return nil
}

func (s *Server) dispatch(r *http.Request, method string, p url.Values) (any, *refusal) {
	kind := "xoxb-"
	if method == "apps.connections.open" {
		kind = "xapp-"
	}
	if bad := s.authorize(token(r), kind); bad != nil {
		return nil, bad
	}
	if wait := s.tooMany(method, p.Get("channel")); wait > 0 {
		return nil, &refusal{code: "ratelimited", retryAfter: wait}
	}
	switch method {
	case "apps.connections.open":
		return s.openConnection(r)
	case "auth.test":
		return map[string]any{
			"url": "https://test.slack.com/", "team": TeamName, "user": BotName, "team_id": Team, "user_id": Bot,
			"bot_id": "B00000001", "is_enterprise_install": false,
		}, nil
	case "chat.postMessage":
		return s.postMessage(p)
	case "chat.postEphemeral":
		return s.postEphemeral(p)
	case "chat.update":
		return s.updateMessage(p)
	case "chat.delete":
		return s.deleteMessage(p)
	case "conversations.open":
		return s.openConversation(p)
	case "conversations.info":
		return s.conversationInfo(p)
	case "conversations.history":
		return s.history(p)
	case "conversations.replies":
		return s.replies(p)
	case "users.conversations":
		return s.conversations(p)
	case "users.info":
		return s.userInfo(p)
	case "files.info":
		return s.fileInfo(p)
	case "files.getUploadURLExternal":
		return s.uploadURL(r, p)
	case "files.completeUploadExternal":
		return s.completeUpload(p)
	}
	return nil, refuse("unknown_method")
}

func (s *Server) called(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
	s.move()
}

func (s *Server) note(method, channel, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, Refusal{Method: method, Channel: channel, Error: strings.TrimSpace(why)})
	s.move()
}

// Calls returns the number of requests of the method, including refused ones.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Refused returns the requests that were refused or broken, in order.
func (s *Server) Refused() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}
