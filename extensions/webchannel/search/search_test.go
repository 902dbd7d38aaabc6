package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// kernel answers each search with one result, and notes who asks.
type kernel struct {
	adminv1.ManageClient
	asked   []*adminv1.CallToolRequest
	content string
	isError bool
}

func (k *kernel) CallTool(
	_ context.Context, q *adminv1.CallToolRequest, _ ...grpc.CallOption,
) (*adminv1.ToolResult, error) {
	k.asked = append(k.asked, q)
	return &adminv1.ToolResult{Content: k.content, IsError: k.isError}, nil
}

func get(t *testing.T, k *kernel, path string, v door.Visitor) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	Register(mux, Options{Manage: k})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(door.With(t.Context(), v), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

var (
	owner  = door.Visitor{Role: "owner", Account: "a1", Person: "p1"}
	member = door.Visitor{Role: "member", Account: "a2", Person: "p2"}
)

func TestHitsAreShownWithTheirMarks(t *testing.T) {
	t.Parallel()
	k := &kernel{content: `{"hits":[{"session_id":"s7","seq":14,"at":"2026-03-01T09:30:00+01:00","agent":"main",` +
		`"channel":"Telegram","name":"conversation s7","kind":"input","from":"<b>Anna</b>","text":"a <i>чайник</i> & more",` +
		`"marks":[[5,17]]}],"before":"99"}`}
	status, body := get(t, k, "/search?q="+url.QueryEscape(`чайник "a"`), owner)
	for _, part := range []string{
		"a &lt;i&gt;<mark>чайник</mark>&lt;/i&gt; &amp; more", "&lt;b&gt;Anna&lt;/b&gt;",
		`href="/board/sessions/s7?before=24"`, "before=99", `value="чайник &#34;a&#34;"`, "Telegram",
	} {
		if !strings.Contains(body, part) {
			t.Errorf("%q is missing in\n%s", part, body)
		}
	}
	var query struct {
		Query string
		Marks bool
	}
	if err := json.Unmarshal(k.asked[0].GetArguments(), &query); err != nil || query.Query != `чайник "a"` || !query.Marks {
		t.Errorf("asked %s: %v", k.asked[0].GetArguments(), err)
	}
	if status != http.StatusOK || k.asked[0].GetPerson() != "" {
		t.Errorf("status %d, asked for %q", status, k.asked[0].GetPerson())
	}
}

func TestEachFindsTheirOwn(t *testing.T) {
	t.Parallel()
	k := &kernel{content: `{"hits":[]}`}
	if status, body := get(t, k, "/search?q=tea", member); status != http.StatusOK || len(k.asked) != 1 ||
		k.asked[0].GetPerson() != "a2" || !k.asked[0].GetHousehold() || !strings.Contains(body, "Nothing that was said") {
		t.Errorf("%d %v\n%s", status, k.asked, body)
	}
	for _, v := range []door.Visitor{
		{}, {Role: "guest", Account: "a3", Person: "p3"}, {Role: "owner", Person: "p1", Token: "t", Scopes: []string{door.ScopeMemory}},
	} {
		if status, _ := get(t, k, "/search?q=tea", v); status != http.StatusForbidden {
			t.Errorf("%+v: %d", v, status)
		}
	}
	if status, _ := get(t, k, "/search", owner); status != http.StatusOK || len(k.asked) != 1 {
		t.Errorf("without words: status %d, %d searches", status, len(k.asked))
	}
	k.content, k.isError = "the index is gone", true
	if status, body := get(t, k, "/search?q=tea", owner); status == http.StatusOK ||
		!strings.Contains(body, "the index is gone") {
		t.Errorf("%d\n%s", status, body)
	}
}

// Marks that don't fit the text lead to no panic and lose no text.
func TestOddMarks(t *testing.T) {
	t.Parallel()
	for _, marks := range []string{"[[3,1]]", "[[0,99]]", "[[-1,2]]", "[[2,3],[0,1]]", "[[0,5]]"} {
		k := &kernel{content: fmt.Sprintf(`{"hits":[{"text":"hello","marks":%s}]}`, marks)}
		_, body := get(t, k, "/search?q=x", owner)
		plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(body)
		if !strings.Contains(plain, "hello") {
			t.Errorf("%s:\n%s", marks, body)
		}
	}
}
