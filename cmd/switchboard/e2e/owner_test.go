package e2e

import (
	"strings"
	"testing"
)

// An extension sees what the owner sees if its manifest says so, and changes nothing
// of it. Each refusal names the line that the manifest lacks.
func TestExtensionsReachTheOwnersSideByGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("reader", "owner", "permissions: {admin: read}")
	w.probe("none", "owner", "")
	w.probe("manager", "owner", "permissions: {admin: manage}")
	w.start()
	seen := func(id string) string {
		t.Helper()
		w.eventually("both answers", func() bool { return strings.Count(w.text("data", id, "seen"), "\n") > 0 })
		return w.text("data", id, "seen")
	}
	contains(t, "with admin: read", seen("reader"), "status of "+w.file()+": <nil>",
		`the manifest of "reader" lacks "permissions: {admin: manage}"`)
	contains(t, "without a grant", seen("none"), "status of : not granted",
		`the manifest of "none" lacks "permissions: {admin: read}"`,
		`the manifest of "none" lacks "permissions: {admin: manage}"`)
	if x := w.extension(w.control(), "manager"); x.State != "invalid" ||
		!strings.Contains(x.Detail+x.Problem, "manage is for built-in extensions only") {
		t.Errorf("a dropped-in extension that would manage: %+v", x)
	}
}
