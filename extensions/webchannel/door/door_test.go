package door_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// store is a key-value store in memory with the versions of the kernel's.
type store struct {
	mu     sync.Mutex
	values map[string]sdk.Value
	next   int64
}

func (s *store) Get(_ context.Context, key string) (sdk.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.values[key]
	v.Key = key
	return v, nil
}

func (s *store) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, v := range s.values {
		if strings.HasPrefix(key, prefix) {
			if err := each(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) Commit(_ context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, check := range []bool{true, false} {
		for _, e := range effects {
			pb, err := e.Proto()
			if err != nil {
				return nil, err
			}
			put, del := pb.GetPut(), pb.GetDelete()
			switch {
			case check && put != nil && put.Version != nil && s.values[put.GetKey()].Version != put.GetVersion(),
				check && del != nil && del.Version != nil && s.values[del.GetKey()].Version != del.GetVersion():
				return nil, contract.ErrConflict
			case check:
			case put != nil:
				s.next++
				s.values[put.GetKey()] = sdk.Value{Key: put.GetKey(), Value: put.GetValue(), Version: s.next}
			case del != nil:
				delete(s.values, del.GetKey())
			}
		}
	}
	return nil, nil
}

// household is the people of an installation.
type household struct {
	adminv1.ReadClient
	adminv1.ManageClient
	mu     sync.Mutex
	people []*adminv1.Person
}

func (h *household) People(context.Context, *adminv1.PeopleRequest, ...grpc.CallOption) (*adminv1.PeopleResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &adminv1.PeopleResponse{People: append([]*adminv1.Person{}, h.people...)}, nil
}

func (h *household) Admit(_ context.Context, q *adminv1.AdmitRequest, _ ...grpc.CallOption) (*adminv1.Account, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &adminv1.Account{Channel: q.GetChannel(), UserId: q.GetUserId(), Id: "p-" + q.GetUserId(), ApprovedAtUs: 1}
	for i, p := range h.people {
		if p.GetId() == q.GetPerson() {
			h.people[i] = &adminv1.Person{Id: p.GetId(), Name: p.GetName(), Role: p.GetRole(), Accounts: append(p.GetAccounts(), a)}
			return a, nil
		}
	}
	h.people = append(h.people, &adminv1.Person{Id: q.GetPerson(), Role: q.GetPerson(), Accounts: []*adminv1.Account{a}})
	return a, nil
}

func (h *household) block(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, p := range h.people {
		if p.GetId() == id {
			h.people[i] = &adminv1.Person{Id: id, Name: p.GetName(), Role: "blocked", Accounts: p.GetAccounts()}
		}
	}
}

const host = "127.0.0.1:7717"

type rig struct {
	t    *testing.T
	door *door.Door
	kv   *store
	home *household
	now  time.Time
	site http.Handler
}

func newRig(t *testing.T) *rig {
	r := &rig{
		t: t, kv: &store{values: map[string]sdk.Value{}}, now: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC),
		home: &household{people: []*adminv1.Person{{Id: "clara", Name: "Clara", Role: "member"}}},
	}
	r.open()
	return r
}

// open makes the door of a process that has just started.
func (r *rig) open() {
	r.door = door.New(door.Options{
		Store: r.kv, Read: r.home, Manage: r.home, Channel: "web_channel", Hosts: []string{host},
		Now: func() time.Time { return r.now }, Log: hclog.NewNullLogger(),
	})
	r.site = r.door.Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		v := door.From(q.Context())
		_, _ = w.Write([]byte("in:" + v.Person + ":" + v.Role + ":" + v.Token))
	}), "/healthz", "/hooks/")
}

func (r *rig) get(path string, header ...string) *httptest.ResponseRecorder {
	return r.do(http.MethodGet, path, header...)
}

func (r *rig) do(method, path string, header ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, "http://"+host+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			q.Host = header[i+1]
			continue
		}
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.site.ServeHTTP(w, q)
	return w
}

// login uses a link of a person and returns the cookie.
func (r *rig) login(person string) string {
	r.t.Helper()
	path, err := r.door.Link(r.t.Context(), person)
	if err != nil {
		r.t.Fatal(err)
	}
	w := r.get(path)
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
		r.t.Fatalf("the link answers %d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		r.t.Errorf("the cookie is %+v", c)
	}
	return c.Name + "=" + c.Value
}

func (r *rig) expect(w *httptest.ResponseRecorder, status int, body string) {
	r.t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), body) {
		r.t.Errorf("got %d %s, want %d %s", w.Code, w.Body, status, body)
	}
}

func TestALinkWorksOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path, err := r.door.Link(t.Context(), "Clara")
	if err != nil {
		t.Fatal(err)
	}
	r.open() // the link outlives the process
	var in int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r.get(path).Code == http.StatusSeeOther {
				mu.Lock()
				defer mu.Unlock()
				in++
			}
		})
	}
	all.Wait()
	if in != 1 {
		t.Errorf("%d of 8 that used one link at once got in", in)
	}
	path, err = r.door.Link(t.Context(), "clara")
	if err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(11 * time.Minute)
	r.expect(r.get(path), http.StatusForbidden, "expired")
	for _, made := range r.kv.values {
		if strings.Contains(string(made.Value), path[len("/enter?code="):]) {
			t.Error("the code of a link is stored in clear")
		}
	}
}

func TestALoginLastsAndEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	clara, owner := r.login("clara"), r.login("")
	r.open()
	r.expect(r.get("/", "Cookie", clara), http.StatusOK, "in:clara:member:")
	r.expect(r.get("/", "Cookie", owner), http.StatusOK, "in:owner:owner:")
	r.expect(r.get("/"), http.StatusUnauthorized, "")
	r.expect(r.get("/", "Cookie", clara+"x"), http.StatusUnauthorized, "")

	logins, err := r.door.Logins(t.Context(), door.Visitor{Account: "p-clara", Role: "member"})
	if err != nil || len(logins) != 1 {
		t.Fatalf("Clara sees the logins %+v, %v", logins, err)
	}
	if err := r.door.EndLogin(t.Context(), door.Visitor{Account: "p-x", Role: "member"}, logins[0].ID); err == nil {
		t.Error("another person ended her login")
	}
	if err := r.door.EndLogin(t.Context(), door.Visitor{Account: "p-clara", Role: "member"}, logins[0].ID); err != nil {
		t.Error(err)
	}
	r.expect(r.get("/", "Cookie", clara), http.StatusUnauthorized, "")

	for range 3 { // each visit prolongs it
		r.now = r.now.Add(20 * 24 * time.Hour)
		r.expect(r.get("/", "Cookie", owner), http.StatusOK, "in:owner")
	}
	r.now = r.now.Add(31 * 24 * time.Hour)
	r.expect(r.get("/", "Cookie", owner), http.StatusUnauthorized, "")
}

func TestWhoIsBlockedIsOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	clara := r.login("clara")
	token, err := r.door.CreateToken(t.Context(), "laptop", "clara", []string{door.ScopeAll})
	if err != nil {
		t.Fatal(err)
	}
	r.home.block("clara")
	r.now = r.now.Add(4 * time.Second)
	r.expect(r.get("/", "Cookie", clara), http.StatusUnauthorized, "")
	r.expect(r.get("/", "Authorization", "Bearer "+token), http.StatusUnauthorized, "")
	if _, err := r.door.Link(t.Context(), "clara"); err == nil {
		t.Error("a blocked person got a link")
	}
}

func TestForeignPagesGetNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.login("clara")
	for name, q := range map[string][]string{
		"another name for this machine": {"Host", "evil.example:7717"},
		"the name with another port":    {"Host", "127.0.0.1:80"},
	} {
		if w := r.get("/", append(q, "Cookie", c)...); w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", name, w.Code)
		}
		if w := r.get("/healthz", q...); w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s, a public path: %d", name, w.Code)
		}
	}
	for name, q := range map[string][]string{
		"a script of another site":  {"Origin", "https://evil.example"},
		"a sandboxed frame":         {"Origin", "null"},
		"another port":              {"Origin", "http://127.0.0.1:8080"},
		"an image of another site":  {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		"a frame of another site":   {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"another port, same site":   {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
		"a form of the other party": {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if w := r.do(method, "/live/chat", append(q, "Cookie", c)...); w.Code != http.StatusForbidden {
				t.Errorf("%s, %s: %d", name, method, w.Code)
			}
		}
	}
	r.expect(r.do(http.MethodPost, "/say", "Cookie", c), http.StatusForbidden, "another site") // no word of its origin
	r.expect(r.do(http.MethodPost, "/say", "Cookie", c, "Origin", "http://"+host), http.StatusOK, "in:clara")
	r.expect(r.get("/", "Cookie", c, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
		"document"), http.StatusOK, "in:clara") // a link to the page was followed
}

func TestTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, bad := range []struct {
		name, person string
		scopes       []string
	}{
		{"Laptop", "", []string{"all"}}, {"laptop", "", nil}, {"laptop", "", []string{"everything"}},
		{"laptop", "dora", []string{"all"}}, {"", "", []string{"all"}},
	} {
		if _, err := r.door.CreateToken(t.Context(), bad.name, bad.person, bad.scopes); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	token, err := r.door.CreateToken(t.Context(), "graphs", "clara", []string{door.ScopeMessages, door.ScopeRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.door.CreateToken(t.Context(), "graphs", "", []string{"all"}); err == nil {
		t.Error("two tokens have one name")
	}
	r.open()
	bearer := []string{"Authorization", "Bearer " + token}
	r.expect(r.get("/api/v1/me", bearer...), http.StatusOK, "in:clara:member:graphs")
	r.expect(r.do(http.MethodPost, "/api/v1/messages", bearer...), http.StatusOK, "in:clara")
	r.expect(r.get("/api/v1/me", "Authorization", "Bearer "+token[:len(token)-1]+"x"), http.StatusUnauthorized, "not logged in")
	for _, v := range r.kv.values {
		if strings.Contains(string(v.Value), token) {
			t.Error("a token is stored in clear")
		}
	}
	if err := r.door.RevokeToken(t.Context(), "graphs"); err != nil {
		t.Fatal(err)
	}
	r.expect(r.get("/api/v1/me", bearer...), http.StatusUnauthorized, "")
	if err := r.door.RevokeToken(t.Context(), "graphs"); err == nil {
		t.Error("it was revoked twice")
	}
}

func TestGuessingIsLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 20 {
		r.expect(r.get("/", "Cookie", "switchboard=guess"), http.StatusUnauthorized, "")
	}
	w := r.get("/", "Cookie", "switchboard=guess")
	r.expect(w, http.StatusTooManyRequests, "")
	if w.Header().Get("Retry-After") == "" {
		t.Error("it doesn't say when to come back")
	}
	r.now = r.now.Add(10 * time.Second)
	r.expect(r.get("/", "Cookie", "switchboard=guess"), http.StatusUnauthorized, "")
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v      door.Visitor
		scope  string
		change bool
		may    bool
	}{
		{door.Visitor{Person: "p", Role: "owner"}, door.ScopeAdmin, true, true},
		{door.Visitor{Person: "p", Role: "member"}, door.ScopeAdmin, false, false},
		{door.Visitor{Person: "p", Role: "member"}, door.ScopeMemory, true, true},
		{door.Visitor{Person: "p", Role: "guest"}, door.ScopeMemory, false, false},
		{door.Visitor{Person: "p", Role: "guest"}, door.ScopeMessages, true, true},
		{door.Visitor{Person: "p", Role: "owner", Token: "t", Scopes: []string{door.ScopeRead}}, door.ScopeMemory, false, true},
		{door.Visitor{Person: "p", Role: "owner", Token: "t", Scopes: []string{door.ScopeRead}}, door.ScopeMemory, true, false},
		{door.Visitor{Person: "p", Role: "owner", Token: "t", Scopes: []string{door.ScopeTasks}}, door.ScopeMemory, false, false},
		{door.Visitor{Person: "p", Role: "member", Token: "t", Scopes: []string{door.ScopeAll}}, door.ScopeEvents, false, false},
		{door.Visitor{}, door.ScopeMessages, false, false},
	} {
		if got := c.v.May(c.scope, c.change); got != c.may {
			t.Errorf("%+v may use %s (change: %v): %v", c.v, c.scope, c.change, got)
		}
	}
}

func TestAStreamEndsWithItsLogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		began := make(chan struct{})
		r.site = r.door.Handler(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			close(began)
			<-q.Context().Done()
		}))
		c := r.login("clara")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.get("/live/chat", "Cookie", c, "Origin", "http://"+host)
		}()
		<-began
		time.Sleep(time.Minute)
		select {
		case <-ended:
			t.Fatal("the stream of a login that lasts has ended")
		default:
		}
		me := door.Visitor{Account: "p-clara", Role: "member"}
		logins, err := r.door.Logins(t.Context(), me)
		if err != nil || len(logins) != 1 {
			t.Fatalf("logins: %+v, %v", logins, err)
		}
		if err := r.door.EndLogin(t.Context(), me, logins[0].ID); err != nil {
			t.Fatal(err)
		}
		<-ended
	})
}

// No login and no address holds all connections: what is above its part is refused, and others
// get in.
func TestNoOneHoldsAllConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		most int
	}{{"/live/chat", 512}, {"/hooks/x", 256}} {
		r := newRig(t)
		clara, owner := r.login("clara"), r.login("")
		begun, end := make(chan struct{}, c.most), make(chan struct{})
		busy := r.door.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun <- struct{}{}
			<-end
		}), "/hooks/")
		ask := func(handler http.Handler, cookie string) *httptest.ResponseRecorder {
			q := httptest.NewRequest(http.MethodGet, "http://"+host+c.path, nil)
			q.Header.Set("Cookie", cookie)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, q)
			return w
		}
		var all sync.WaitGroup
		for range c.most {
			all.Go(func() { ask(busy, clara) })
		}
		for range c.most {
			<-begun
		}
		r.site = r.door.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("in")) }),
			"/hooks/")
		if w := ask(r.site, clara); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: one more is answered with %d", c.path, w.Code)
		}
		if w := r.get("/", "Cookie", owner); w.Code != http.StatusOK {
			t.Errorf("%s: another login is answered with %d", c.path, w.Code)
		}
		close(end)
		all.Wait()
		if w := ask(r.site, clara); w.Code != http.StatusOK {
			t.Errorf("%s: afterwards %d", c.path, w.Code)
		}
	}
}

// Who isn't let in reads why as a sentence, in the language of the browser.
func TestARefusalIsForPeople(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.get("/board", "Accept", "text/html", "Accept-Language", "en-US")
	r.expect(w, http.StatusUnauthorized, "<p>You are not logged in: run <code>switchboard web</code> on")
	if strings.Contains(w.Body.String(), "token") {
		t.Errorf("a browser is told of tokens: %s", w.Body)
	}
	r.expect(r.get("/board"), http.StatusUnauthorized, "programs need a token")
	r.expect(r.get("/enter?code=x", "Accept", "text/html", "Accept-Language", "ru"), http.StatusForbidden, "Эта ссылка уже")
}
