package board

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// changes has a form of each kind, who may send it, and what comes of it.
var changes = []struct {
	path, form string
	members    bool
	done       string // what the kernel was asked
	back, said string // the page that follows, and what it says
}{
	{
		"/board/channels/send", "channel=telegram_channel&text=tea", false,
		`SendRequest {"channel":"telegram_channel","text":"tea"}`, "/board/channels", "delivered to telegram_channel",
	},
	{
		"/board/people/approve", "code=ABCD2345&role=guest", false,
		`ApproveRequest {"code":"ABCD2345","role":"guest"}`, "/board/people", "Boris is connected on telegram_channel.",
	},
	{"/board/people/clear", "", false, `ClearPairingsRequest {}`, "/board/people", "Deleted 3 codes."},
	{
		"/board/people/role", "person=p2&role=guest", false, `SetRoleRequest {"person":"p2","role":"guest"}`, "/board/people/p2",
		"The role is now: guest.",
	},
	{
		"/board/people/revoke", "channel=telegram_channel&user=22", false,
		`RevokeRequest {"channel":"telegram_channel","user_id":"22"}`, "/board/people", "Ended: answers 2",
	},
	{
		"/board/people/unlink", "account=a4", false, `UnlinkRequest {"account":"a4"}`, "/board/people", "a person of its own now",
	},
	{"/board/people/remove", "person=p2", false, `RemovePersonRequest {"person":"p2"}`, "/board/people", "Boris is removed."},
	{
		"/board/people/household", "group=g1&household=yes", false, `SetHouseholdRequest {"group":"g1","household":true}`,
		"/board/people", "Home is a household group now.",
	},
	{
		"/board/extensions/allow", "id=jotter&code=c1&tools=yes", false,
		`DecideRequest {"id":"jotter","code":"c1","allow":true,"tools":true,"by":"Anna"}`, "/board/extensions/jotter",
		"jotter is allowed.",
	},
	{
		"/board/extensions/refuse", "id=jotter&code=c1", false, `DecideRequest {"id":"jotter","code":"c1","by":"Anna"}`,
		"/board/extensions/jotter", "jotter is refused",
	},
	{
		"/board/extensions/restart", "id=jotter", false, `RestartRequest {"id":"jotter"}`, "/board/extensions/jotter",
		"restarted with it: other.",
	},
	{
		"/board/extensions/enable", "id=mcp", false, `EnableRequest {"id":"mcp","enabled":true}`, "/board/extensions/mcp",
		"mcp is enabled and active.",
	},
	{
		"/board/extensions/disable", "id=mcp", false, `EnableRequest {"id":"mcp"}`, "/board/extensions/mcp", "mcp is disabled.",
	},
	{
		"/board/extensions/install", "source=https://x.example/jotter&hash=h1&allow=yes&tools=yes&replace=yes", false,
		`InstallRequest {"source":"https://x.example/jotter","hash":"h1","allow":true,"tools":true,"replace":true,"by":"Anna"}`,
		"/board/extensions/jotter", "jotter 1.2 is installed. It doesn&#39;t run until you allow it.",
	},
	{
		"/board/extensions/update", "id=jotter&hash=h1", false, `InstallRequest {"id":"jotter","hash":"h1","by":"Anna"}`,
		"/board/extensions/jotter", "jotter 1.2 is installed.",
	},
	{
		"/board/extensions/remove", "id=jotter&data=yes", false, `RemoveRequest {"id":"jotter","data":true}`,
		"/board/extensions", "jotter is removed.",
	},
	{
		"/board/extensions/server/allow", "server=github", false, `mcp/allow {"server":"github"} for "", household false`,
		"/board/extensions", "allowed",
	},
	{
		"/board/extensions/server/refuse", "server=github", false, `mcp/refuse {"server":"github"} for "", household false`,
		"/board/extensions", "refused",
	},
	{"/board/sessions/delete", "id=s1", false, `DeleteSessionRequest {"id":"s1"}`, "/board/sessions", "s1 is deleted."},
	{
		"/board/schedules/add", "text=tea&in=5", true,
		`scheduler/schedule_once {"delay_seconds":300,"message":"tea"}`, "/board/schedules", "scheduled: r7",
	},
	{
		"/board/schedules/add", "text=news&cron=0+9+*+*+*&until=2026-05-01T10:00&task=yes", true,
		`scheduler/schedule_recurring {"cron":"0 9 * * *","message":"news","topic":"system.agent.task",` +
			`"until":"2026-05-01T10:00"}`, "/board/schedules", "scheduled: r8",
	},
	{
		"/board/schedules/edit", "id=r4&text=cake&was-text=tea&at=2026-03-05T10:00&was-at=2026-03-05T10:00", true,
		`scheduler/update_schedule {"action":"edit","id":"r4","message":"cake"}`, "/board/schedules", "changed: r4",
	},
	{
		"/board/schedules/edit", "id=r5&every=2.5&was-every=60&until=&was-until=2026-03-05T10:00", true,
		`scheduler/update_schedule {"action":"edit","every_seconds":150,"id":"r5","until":""}`, "/board/schedules", "changed",
	},
	{
		"/board/schedules/pause", "id=r4", true, `scheduler/update_schedule {"action":"pause","id":"r4"}`, "/board/schedules",
		"changed",
	},
	{
		"/board/schedules/resume", "id=r4", true, `scheduler/update_schedule {"action":"resume","id":"r4"}`, "/board/schedules",
		"changed",
	},
	{"/board/schedules/cancel", "id=r4", true, `scheduler/cancel_schedule {"id":"r4"}`, "/board/schedules", "cancelled: r4"},
	{"/board/tasks/cancel", "id=t1", true, `tasks/cancel {"id":"t1"}`, "/board/tasks", "Cancelled research."},
	{
		"/board/memory/add", "text=tea&kind=open&due=2026-03-05", true,
		`memory/remember {"due":"2026-03-05","kind":"open","text":"tea"}`, "/board/memory", "It is remembered.",
	},
	{
		"/board/memory/edit", "id=m1&text=tea&kind=fact&due=", true,
		`memory/remember {"due":"","id":"m1","kind":"fact","text":"tea"}`, "/board/memory", "Saved.",
	},
	{"/board/memory/forget", "id=m1", true, `memory/forget {"ids":["m1"]}`, "/board/memory", "Forgotten: m1"},
	{
		"/board/questions/answer", "id=q1&form=F&answer=always", false, `owner says "/approve q1 always" in "" with an id`,
		"/board/questions", "in your chat",
	},
	{
		"/board/questions/answer", "id=q1&form=F&answer=no", false, `owner says "/deny q1" in "" with an id`,
		"/board/questions", "in your chat",
	},
	{
		"/board/questions/answer", "id=q4&form=F&answer=Oslo", false, `owner says "/answer q4 Oslo" in "" with an id`,
		"/board/questions", "in your chat",
	},
	{
		"/board/questions/revoke", "agent=chat&tool=core/send", false,
		`RevokeApprovalsRequest {"agent":"chat","tool":"core/send"}`, "/board/questions", "chat asks again",
	},
	{
		"/board/deadletters/resubmit", "event=e8", false, `ResubmitRequest {"event":"e8"}`, "/board/deadletters",
		"1 delivery of e8 is queued again.",
	},
	{
		"/board/backups/create", "secrets=yes", false, `BackupRequest {"secrets":true}`, "/board/backups",
		"/home/backups/b.tar.gz, 2.0 KiB",
	},
}

func TestEachFormChangesWhatItSays(t *testing.T) {
	t.Parallel()
	for _, c := range changes {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []door.Visitor{anna, boris, gus, {}} {
			s := newSite(t)
			w := s.post(v, c.path, form)
			if !v.Owner() && (!c.members || v.Role != "member") {
				if w.Code != http.StatusForbidden && w.Code != http.StatusNotFound || len(s.done) > 0 {
					t.Errorf("%s as %q: %d, %v", c.path, v.Role, w.Code, s.done)
				}
				continue
			}
			done := c.done
			switch {
			case !strings.Contains(done, "/") || strings.HasPrefix(done, "owner says") || strings.Contains(done, " for "):
			case strings.HasPrefix(done, "RevokeA"), strings.HasPrefix(done, "InstallR"):
			case v.Owner():
				done += ` for "", household false`
			default:
				done += ` for "a2", household true`
			}
			if w.Code != http.StatusSeeOther || !slices.Contains(s.done, done) {
				t.Errorf("%s as %s: %d\n%s\nwant %s\n%s", c.path, v.Role, w.Code, strings.Join(s.done, "\n"), done, w.Body)
				continue
			}
			to := w.Header().Get("Location")
			if back, _, _ := strings.Cut(to, "?"); back != c.back {
				t.Errorf("%s leads to %s", c.path, to)
			}
			other := v
			other.Login = "another"
			if _, body := s.get(other, to); strings.Contains(body, c.said) && strings.Contains(body, `class="said"`) {
				t.Errorf("%s: another login sees %q", c.path, c.said)
			}
			if _, body := s.get(v, to); !strings.Contains(body, c.said) || !strings.Contains(body, `class="said"`) {
				t.Errorf("%s: %s doesn't say %q:\n%s", c.path, to, c.said, body)
			}
			if _, body := s.get(v, to); strings.Contains(body, `class="said"`) {
				t.Errorf("%s: %s says %q twice", c.path, to, c.said)
			}
		}
	}
}

// TestAnOfferIsShownBeforeItIsInstalled: and only by a form with what was shown, of a person who
// is logged in.
func TestAnOfferIsShownBeforeItIsInstalled(t *testing.T) {
	t.Parallel()
	asks := &adminv1.Consent{State: "asks", Asks: []string{"read mail", "send mail"}, OffersTools: true}
	asks.More = asks.Asks
	more := proto.CloneOf(asks)
	more.More = more.More[1:]
	for _, c := range []struct {
		name   string
		offer  *adminv1.InstallResponse
		form   string
		wants  []string
		absent string
	}{
		{
			"new", &adminv1.InstallResponse{Consent: asks, Source: "/src", Publisher: "x.example", Uses: []string{"keeps notes"}},
			"source=/src&index=/i",
			[]string{
				"Install Jotter?", "/src", "x.example", "read mail", "keeps notes", "Allow and install", "Install without allowing it",
				`action="/board/extensions/install"`, `name="source" value="/src"`, `name="index" value="/i"`,
				`name="hash" value="h1"`, `name="tools"`,
			}, `name="replace"`,
		},
		{
			"update", &adminv1.InstallResponse{
				Consent: more, Installed: "1.1", Older: true, Foreign: "changed", NoLonger: []string{"sing"},
			}, "id=jotter",
			[]string{
				"Update Jotter?", "1.1 is installed", "It asks for more", "send mail", "It no longer asks to:", "sing", "older",
				"would be replaced", `name="replace" value="yes"`, `action="/board/extensions/update"`, "Allow and update",
			}, "Install without allowing it",
		},
		{"nothing new", &adminv1.InstallResponse{Installed: "1.2", Current: true}, "id=jotter", []string{"Jotter is up to date"}, "<form"},
		{"no permission", &adminv1.InstallResponse{}, "source=/src", []string{"It asks for no permission."}, `name="allow"`},
	} {
		s := newSite(t)
		c.offer.Id, c.offer.Name, c.offer.Version, c.offer.Hash = "jotter", "Jotter", "1.2", "h1"
		s.offered = c.offer
		form, _ := url.ParseQuery(c.form)
		w := s.post(anna, "/board/extensions/look", form)
		body := w.Body.String()
		checkHTML(t, c.name, body)
		for _, want := range c.wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the offer lacks %q:\n%s", c.name, want, body)
			}
		}
		if w.Code != http.StatusOK || strings.Contains(body, c.absent) || len(s.done) != 1 || strings.Contains(s.done[0], "hash") {
			t.Errorf("%s: %d, %v\n%s", c.name, w.Code, s.done, body)
		}
		if w := s.post(boris, "/board/extensions/look", form); w.Code != http.StatusForbidden {
			t.Errorf("%s: a member looks: %d", c.name, w.Code)
		}
	}
	program := anna
	program.Token, program.Scopes = "ci", []string{door.ScopeAll}
	program.Login = ""
	old := anna
	old.Began = noon.Add(-time.Hour)
	s := newSite(t)
	for path, form := range map[string]string{
		"look": "source=/src", "install": "source=/src&hash=h1", "update": "id=jotter&hash=h1",
	} {
		values, _ := url.ParseQuery(form)
		for _, v := range []door.Visitor{program, old} {
			if w := s.post(v, "/board/extensions/"+path, values); w.Code != http.StatusForbidden {
				t.Errorf("a token, or an old login, may use %s: %d", path, w.Code)
			}
		}
		values.Del("hash")
		if path == "install" || path == "update" {
			if w := s.post(anna, "/board/extensions/"+path, values); w.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s without a look: %d", path, w.Code)
			}
		}
	}
	if len(s.done) > 0 {
		t.Errorf("the kernel was asked: %v", s.done)
	}
}

// TestAMemberAnswersOnlyTheirQuestions: and where they were asked.
func TestAMemberAnswersOnlyTheirQuestions(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{"q1": 404, "q2": 303, "q3": 404, "q4": 404, "q9": 404, "q2 x": 404} {
		s := newSite(t)
		w := s.post(boris, "/board/questions/answer", url.Values{"id": {id}, "answer": {"tea"}, "form": {"F"}})
		if w.Code != want || len(s.done) > 0 != (want == 303) {
			t.Errorf("%s: %d, %v", id, w.Code, s.done)
		}
	}
	s := newSite(t)
	if w := s.post(anna, "/board/questions/answer", url.Values{"id": {"q2"}, "answer": {"tea"}}); w.Code != 404 {
		t.Errorf("the owner answers for another person: %d", w.Code)
	}
	if w := s.post(anna, "/board/questions/answer", url.Values{"id": {"q4"}, "answer": {" "}}); w.Code != 422 {
		t.Errorf("an empty answer: %d", w.Code)
	}
}

func TestAFormThatIsWrongChangesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, form, want string }{
		{"/board/schedules/add", "text=tea", "give one time"},
		{"/board/schedules/add", "text=tea&in=5&cron=*", "give one time"},
		{"/board/schedules/add", "text=tea&in=soon", "soon is no number of minutes"},
		{"/board/schedules/add", "text=tea&in=NaN", "NaN is no number of minutes"},
		{"/board/schedules/add", "text=tea&in=-5", "-5 is no number of minutes"},
		{"/board/people/remove", "person=nobody", "there is no such person"},
	} {
		s := newSite(t)
		form, _ := url.ParseQuery(c.form)
		w := s.post(anna, c.path, form)
		if body := w.Body.String(); w.Code < 400 || !strings.Contains(body, c.want) || len(s.done) > 0 {
			t.Errorf("%s %s: %d, %v\n%s", c.path, c.form, w.Code, s.done, body)
		}
	}
	s := newSite(t)
	if w := s.post(anna, "/board/memory/add", url.Values{"text": {strings.Repeat("x", maxForm)}}); w.Code != 400 || len(s.done) > 0 {
		t.Errorf("a form that is too long: %d, %v", w.Code, s.done)
	}
	s.refused = map[string]string{"memory/forget": "nothing was forgotten"}
	if w := s.post(anna, "/board/memory/forget", url.Values{"id": {"m5"}}); w.Code != 422 ||
		!strings.Contains(w.Body.String(), "nothing was forgotten") {
		t.Errorf("a tool refused: %d\n%s", w.Code, w.Body)
	}
}

// TestEachChangeHasItsCommand reads the table of docs/page.md: what the page does, the command
// line does too. That the commands exist is tested with the other documents.
func TestEachChangeHasItsCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\|.*\\| `switchboard [^|]*\\|$").FindAllString(string(text), -1) {
		for _, path := range regexp.MustCompile("`(/board/[^`]+)`").FindAllStringSubmatch(row, -1) {
			documented[path[1]] = true
		}
	}
	tested := map[string]bool{}
	for _, c := range changes {
		tested[c.path] = true
	}
	s := newSite(t)
	for _, path := range s.board.changes {
		if !documented[path] {
			t.Errorf("docs/page.md has no command for %s", path)
		}
		if !tested[path] {
			t.Errorf("no test sends the form %s", path)
		}
		delete(documented, path)
	}
	for path := range documented {
		t.Errorf("docs/page.md names a form %s, which no page has", path)
	}
}
