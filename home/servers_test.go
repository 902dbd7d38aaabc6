package home

import (
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/manifests"
)

// npx and the like run what they have downloaded; other servers run what is installed.
func TestServersThatInstallRunWhatTheyDownload(t *testing.T) {
	t.Parallel()
	o, _ := house(t)
	dir := t.TempDir()
	for command, want := range map[string]bool{"npx": true, "/usr/bin/uvx": true, "node": false} {
		l := mcpfile.Launch{Server: mcpfile.Server{Command: command}, Dir: dir}
		p := (&files{options: o}).serverPolicy(l, 0)
		if got := slices.Contains(p.Execute, manifests.ResolveLinks(dir)); got != want || !slices.Contains(p.Write, manifests.ResolveLinks(dir)) {
			t.Errorf("%s runs what is in its directory: %v, want %v", command, got, want)
		}
	}
}
