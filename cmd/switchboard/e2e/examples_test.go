package e2e

import (
	"os/exec"
	"testing"
)

// The examples in Go keep the rules for extensions; those in other languages are verified
// where they are tried.
func TestVerifyPassesTheExamplesInGo(t *testing.T) {
	t.Parallel()
	for id, dir := range map[string]string{"file_channel": "filechannel", "mail_channel": "mail_channel"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env["MAIL_PASSWORD"] = "secret"
			args := []string{"extensions", "verify", w.file(id), "--patience", "1m"}
			if id == "mail_channel" {
				w.write("{address: house@example.org, imap: '127.0.0.1:1', smtp: '127.0.0.1:1', security: none}", 0o600, "mail.yaml")
				args = append(args, "--config", w.file("mail.yaml"), "--secret", "MAIL_PASSWORD")
			}
			example := "../../../sdk/examples/" + dir
			w.write("", 0o600, id, "made")
			copyFile(w, example+"/manifest.yaml", w.file(id, "manifest.yaml"))
			build := exec.CommandContext(t.Context(), "go", "build", "-o", w.file(id, dir), "./"+example)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build %s: %v: %s", id, err, out)
			}
			w.must(args...)
		})
	}
}
