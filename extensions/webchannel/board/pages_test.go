package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// pages has what is on each page of the owner, and of a member; nothing: it is not theirs.
var pages = []struct {
	path           string
	owner, members []string
}{
	{"/board", []string{
		"Needs attention", "unknown key", "1 person waits for approval", "1 dead letter", "asks for your permission",
		"telegram_channel 1001", "2 messages", "running", "May I send it?", "its work elsewhere", "user.message", "hello there",
	}, []string{"What is yours", "/board/memory"}},
	{"/board/channels", []string{
		"Telegram", "ready", "as @tea_bot", "the default channel", "Slack", "unconfigured", "the token is missing",
		"switchboard setup",
	}, nil},
	{"/board/people", []string{
		"ABCD2345", "Stranger", "Anna", "Boris", "Asia/Tokyo", "22:00-07:00", "telegram_channel/22", "Home",
		"Make it a household group", "/link",
	}, nil},
	{"/board/people/p2", []string{
		"Boris", "member: uses", "Boris B.", "messages go here", "3 memories, 3 reminders, 3 tasks", "Unlink", "Revoke", "Remove",
	}, nil},
	{"/board/extensions", []string{
		"jotter", "not allowed", "partly limited", "jotter asks for your permission", "github", "the network", "not started",
		"Install an extension", "Not enabled", "Web", "Enable",
	}, nil},
	{"/board/extensions/jotter", []string{
		"read mail", "send mail", "keeps notes", "panic: boom", "exit status 1", "no landlock", "a problem", "warn  poll: slow",
		"after=3s", "not json", "It runs with the permissions that it had until you decide.",
	}, nil},
	{"/board/extensions/telegram_channel", []string{"failed", "no token", "Restart", "Disable", "Remove"}, nil},
	{"/board/extensions/web", []string{"disabled", "Enable"}, nil},
	{"/board/extensions/kernel", []string{"warn  poll: slow"}, nil},
	{"/board/sessions", []string{"telegram_channel 1001", "web_channel boris", "2 messages wait"}, []string{"web_channel boris"}},
	{"/board/sessions/s1", []string{
		"what is the time?", "let me see", "calls the tool core/clock", "{&#34;zone&#34;:&#34;x&#34;}", "the tool core/clock answers", "a note",
		"/trace/e9", "Delete this conversation",
	}, nil},
	{"/board/sessions/s2", []string{"what is the time?"}, []string{"what is the time?"}},
	{"/board/schedules", []string{
		"kettle", "rent", "problem: late", "Pause", "Resume", "The week", "10:00", "14:00", "2026-03-05T10:00", "0 9 1 * *",
		"and so on", "Add a reminder",
	}, []string{"kettle"}},
	{"/board/tasks", []string{
		"research", "scout for main", "read", "find out", "a – b", "no agent b", "a → b", "b → c", "and 1 more",
	}, []string{"research"}},
	{"/board/tasks/t1", []string{"find out", "found", "/board/sessions/s3"}, []string{"found"}},
	{"/board/tasks/exchange/x1", []string{"hi b", "all good", "a concluded it", "/board/sessions/s8"}, []string{"hi b"}},
	{"/board/memory", []string{
		"buy tea", "open item", "Thu 5 Mar 2026", "and 2 more", "m9 is damaged: bad row", "everyone&#39;s", "Remember something",
	}, []string{"buy tea"}},
	{"/board/memory?q=x", []string{"No memory matches."}, []string{"No memory matches."}},
	{"/board/questions", []string{
		"May I send it?", "Always", "Tea or coffee?", "only they can answer it", "Which city?", "core/send",
	}, []string{"Tea or coffee?", "coffee", "What is your name?", "can be answered there"}},
	{"/board/usage", []string{
		"Tokens by day", "openai/mini", "1,330", "~70", "0.25 EUR", "By person", "Boris", "a limit", "2026-03-04: 1,330",
	}, []string{"openai/mini", "1,330"}},
	{"/board/deadletters", []string{"good morning", "the bot was blocked", "may arrive twice", "Deliver again"}, nil},
	{"/board/backups", []string{"every night", "disk full", "/b", "2.0 KiB", "Make a backup now"}, nil},
	{"/board/configuration", []string{
		"unknown key", "nonsense: 1", "/home/config.yaml", "a hint", "openai/mini", "Fix it",
	}, nil},
}

func TestEachPageShowsWhatIsTheVisitors(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, p := range pages {
		for _, v := range []struct {
			door.Visitor
			wants []string
		}{{anna, p.owner}, {boris, p.members}, {gus, nil}, {door.Visitor{}, nil}} {
			status, body := s.get(v.Visitor, p.path)
			checkHTML(t, p.path, body)
			if v.Role == "guest" && p.path == "/board/questions" {
				if status != http.StatusOK || strings.Contains(body, "Tea or coffee?") {
					t.Errorf("%s as a guest: %d\n%s", p.path, status, body)
				}
				continue
			}
			if v.wants == nil {
				if status != http.StatusForbidden && status != http.StatusNotFound {
					t.Errorf("%s as %s: status %d", p.path, v.Role, status)
				}
				for _, secret := range p.owner {
					if len(secret) > 8 && !strings.HasPrefix(p.path, "/board/sessions/") && strings.Contains(body, secret) {
						t.Errorf("%s as %s shows %q", p.path, v.Role, secret)
					}
				}
				continue
			}
			if status != http.StatusOK {
				t.Errorf("%s as %s: status %d\n%s", p.path, v.Role, status, body)
			}
			for _, want := range v.wants {
				if !strings.Contains(body, want) {
					t.Errorf("%s as %s lacks %q:\n%s", p.path, v.Role, want, body)
				}
			}
		}
	}
	for path, secret := range map[string]string{
		"/board/sessions": "telegram_channel 1001", "/board/questions": "May I send it?", "/board/usage": "local/big",
		"/board/schedules": "/board/people", "/board/tasks/t1": "/board/sessions/s3", "/board/memory": "everyone&#39;s",
	} {
		if _, body := s.get(boris, path); strings.Contains(body, secret) {
			t.Errorf("%s shows a member %q", path, secret)
		}
	}
}

// TestToolsAreCalledForTheVisitor: a member's tools see what a private chat sees, the owner's all.
func TestToolsAreCalledForTheVisitor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    door.Visitor
		path string
		want string
	}{
		{anna, "/board/tasks", `for "", household false`}, {boris, "/board/tasks", `for "a2", household true`},
		{boris, "/board/schedules", `for "a2", household true`}, {boris, "/board/memory", `for "a2", household true`},
		{boris, "/board/memory?person=owner", `for "a2", household true`},
		{anna, "/board/memory?person=p2", `for "p2", household false`},
		{boris, "/board/tasks/t1", `for "a2", household true`}, {boris, "/board/tasks/exchange/x1", `for "a2", household true`},
	} {
		s := newSite(t)
		s.get(c.v, c.path)
		if len(s.done) == 0 {
			t.Errorf("%s called no tool", c.path)
		}
		for _, call := range s.done {
			if !strings.HasSuffix(call, c.want) {
				t.Errorf("%s as %s: %s, want %s", c.path, c.v.Name, call, c.want)
			}
		}
	}
}

// TestTokensDoWhatTheirScopesName: also on pages.
func TestTokensDoWhatTheirScopesName(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reader, writer := anna, boris
	reader.Token, reader.Scopes = "t", []string{door.ScopeTasks}
	writer.Token, writer.Scopes = "t", []string{door.ScopeRead}
	for _, c := range []struct {
		v    door.Visitor
		path string
		want int
	}{
		{reader, "/board/tasks", 200}, {reader, "/board/people", 403}, {reader, "/live/board", 403},
		{writer, "/board/tasks", 200}, {writer, "/board/usage", 403},
	} {
		if status, _ := s.get(c.v, c.path); status != c.want {
			t.Errorf("%s: %d, want %d", c.path, status, c.want)
		}
	}
	s.done = nil
	if w := s.post(writer, "/board/tasks/cancel", nil); w.Code != 403 || len(s.done) > 0 {
		t.Errorf("a token for reading changed something: %d, %v", w.Code, s.done)
	}
}

const nasty = `<script>alert(1)</script>"'><img src=x onerror=alert(1)><svg/onload=alert(1)> javascript:alert(1)`

// TestNothingThatIsShownIsHTML fills each text that the kernel or a tool can say.
func TestNothingThatIsShownIsHTML(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, m := range messages(s.kernel) {
		poison(m.ProtoReflect())
	}
	for i := range s.logs {
		s.logs[i] = nasty
	}
	s.logs = append(s.logs, mustJSON(map[string]string{"@message": nasty, "@level": nasty, "@module": nasty, nasty: nasty}))
	s.status.Backup = []byte(poisonJSON(t, string(s.status.Backup)))
	for name, answer := range s.tools {
		s.tools[name] = poisonJSON(t, answer)
	}
	for _, p := range pages {
		for _, v := range []door.Visitor{anna, boris} {
			_, body := s.get(v, p.path)
			checkHTML(t, p.path, body)
		}
	}
	for _, text := range []string{s.board.draw(view{"", noon.Location()}, s.board.picture(t.Context()))} {
		checkHTML(t, "the live board", text)
		if strings.Contains(string(message(text)), "\r") {
			t.Error("a line of an event has a carriage return")
		}
	}
	for _, err := range []error{errors.New(nasty), fmt.Errorf("%w: %s", contract.ErrInvalid, nasty), toolError(nasty)} {
		s.err = err
		for _, p := range pages {
			_, body := s.get(anna, p.path)
			checkHTML(t, p.path, body)
		}
	}
}

// messages are all messages of a kernel.
func messages(k *kernel) (all []proto.Message) {
	all = append(all, k.status, k.dir, k.people, k.configuration)
	for _, x := range k.extensions {
		all = append(all, x)
	}
	for _, x := range k.approvals {
		all = append(all, x)
	}
	for _, x := range k.events {
		all = append(all, x)
	}
	for _, x := range k.deliveries {
		all = append(all, x)
	}
	for _, x := range k.sessions {
		all = append(all, x)
	}
	for _, x := range k.history {
		all = append(all, x)
	}
	for _, x := range k.used {
		all = append(all, x)
	}
	for _, x := range k.asked {
		all = append(all, x)
	}
	return all
}

// kept are the fields by which tests and pages find something.
var kept = []protoreflect.Name{"id", "topic", "state", "kind", "event", "person", "channel", "conversation", "day"}

// poison makes all texts of a message nasty.
func poison(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		isText := f.Kind() == protoreflect.StringKind
		switch {
		case f.IsMap():
		case f.IsList() && isText:
			for i := range v.List().Len() {
				v.List().Set(i, protoreflect.ValueOfString(nasty))
			}
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				poison(v.List().Get(i).Message())
			}
		case f.IsList():
		case f.Kind() == protoreflect.MessageKind:
			poison(v.Message())
		case isText && !slices.Contains(kept, f.Name()):
			m.Set(f, protoreflect.ValueOfString(nasty))
		case f.Kind() == protoreflect.BytesKind && f.Name() == "payload":
			m.Set(f, protoreflect.ValueOfBytes([]byte(mustJSON(map[string]string{"text": nasty, "user_name": nasty}))))
		case f.Kind() == protoreflect.BytesKind && f.Name() == "arguments":
			m.Set(f, protoreflect.ValueOfBytes([]byte(nasty)))
		}
		return true
	})
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// poisonJSON makes all texts nasty but times.
func poisonJSON(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(text, err)
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				v[key] = walk(value)
			}
			return v
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
			return v
		case string:
			if strings.HasPrefix(v, "2026-") {
				return v
			}
			return nasty
		}
		return v
	}
	return mustJSON(walk(v))
}

// checkHTML reports elements and attributes that the board doesn't write.
func checkHTML(t *testing.T, what, body string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if slices.Contains([]string{"img", "iframe", "object", "embed", "style", "base", "meta"}, n.Data) {
			t.Errorf("%s has an element %s", what, n.Data)
		}
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s has an attribute %s", what, a.Key)
			}
		}
		if n.Data == "script" && attributes["src"] != scriptPath || n.Data == "svg" && attributes["viewBox"] == "" {
			t.Errorf("%s has an element %s %v", what, n.Data, attributes)
		}
		for _, name := range []string{"href", "action", "src"} {
			if to, has := attributes[name]; has && !strings.HasPrefix(to, "/") {
				t.Errorf("%s leads to %s", what, to)
			}
		}
		if n.Data == "form" && attributes["method"] != "post" && attributes["role"] != "search" {
			t.Errorf("%s has a form without a method: %v", what, attributes)
		}
		if (n.Data == "input" && attributes["type"] != "hidden" || n.Data == "select" || n.Data == "textarea") &&
			n.Parent.Data != "label" {
			t.Errorf("%s has an input without a label: %v", what, attributes)
		}
	}
}

func TestAPageSaysWhyItCannotBeShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.refused = map[string]string{"tasks/list": "the queue is damaged"}
	if status, body := s.get(anna, "/board/tasks"); status != 422 || !strings.Contains(body, "the queue is damaged") {
		t.Errorf("%d\n%s", status, body)
	}
	s.err = fmt.Errorf("%w: the kernel is stopping", contract.ErrGone)
	if status, body := s.get(anna, "/board/people"); status != 503 || !strings.Contains(body, "<p class=\"error\" role=\"alert\">the kernel is stopping") {
		t.Errorf("%d\n%s", status, body)
	}
	if status, body := s.get(anna, "/board"); status != 200 || !strings.Contains(body, "The kernel doesn&#39;t answer") {
		t.Errorf("%d\n%s", status, body)
	}
	s.err = nil
	for path, want := range map[string]int{
		"/board/nothing": 404, "/board/people/nobody": 404, "/board/extensions/nothing": 404, "/board/sessions/s77": 404,
	} {
		if status, _ := s.get(anna, path); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestEmptyPagesSayWhatToDo: an installation in which nothing has happened yet.
func TestEmptyPagesSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k := s.kernel
	k.status, k.dir, k.people = &adminv1.Status{}, &adminv1.DirectoryResponse{}, &adminv1.PeopleResponse{}
	k.extensions, k.approvals, k.events, k.deliveries, k.sessions, k.used, k.asked, k.logs = nil, nil, nil, nil, nil, nil, nil, nil
	k.configuration = &adminv1.ConfigurationResponse{}
	for name := range k.tools {
		k.tools[name] = "{}"
	}
	for path, want := range map[string]string{
		"/board": "No agent is at work.", "/board/channels": "switchboard setup", "/board/people": "No one has written yet",
		"/board/extensions": "There are no extensions.", "/board/sessions": "There are no conversations yet.",
		"/board/schedules": "remind me in 5 minutes", "/board/tasks": "There are no tasks.", "/board/memory": "Tell the assistant",
		"/board/questions": "No question is open.", "/board/usage": "The offline model costs nothing.",
		"/board/deadletters": "There are no dead letters", "/board/backups": "Make one now.",
		"/board/configuration": "the defaults are in force",
	} {
		if status, body := s.get(anna, path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, lacks %q\n%s", path, status, want, body)
		}
	}
}

func TestATranscriptIsPaged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.history = nil
	for i := range int64(120) {
		e := known().history[0]
		e.Seq, e.Text = i+1, fmt.Sprintf("row %d.", i+1)
		s.history = append(s.history, e)
	}
	for path, want := range map[string][3]string{
		"/board/sessions/s1":            {"row 120.", "row 70.", "?before=71"},
		"/board/sessions/s1?before=71":  {"row 70.", "row 71.", "?before=21"},
		"/board/sessions/s1?before=21":  {"row 1.", "row 21.", "Newest"},
		"/board/sessions/s1?before=-9&": {"row 120.", "row 70.", "?before=71"},
	} {
		if _, body := s.get(anna, path); !strings.Contains(body, want[0]) || strings.Contains(body, want[1]) ||
			!strings.Contains(body, want[2]) {
			t.Errorf("%s: %v", path, want)
		}
	}
}

func TestPagesSpeakTheVisitorsLanguage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	russian := anna
	russian.Language = "ru-RU"
	for _, p := range pages {
		_, body := s.get(russian, p.path)
		checkHTML(t, p.path, body)
		if !regexp.MustCompile("[а-яё]{3,}").MatchString(body) {
			t.Errorf("%s is not in Russian:\n%s", p.path, body)
		}
	}
}
