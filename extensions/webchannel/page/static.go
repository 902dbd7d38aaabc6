package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"sync"
)

//go:embed static
var static embed.FS

// version changes with every file in the directory static.
var version = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(static, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := static.ReadFile(name)
		_, _ = sum.Write(append([]byte(name+"\x00"), b...))
		return err
	})
	if err != nil {
		panic(err) // it is part of the program
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})

// Static returns the address of a file in the directory static. It changes with the files, so
// browsers keep them for good.
func Static(name string) string { return StaticPrefix + version() + "/" + name }

// StaticPrefix begins the addresses of these files. They are the same for everyone.
const StaticPrefix = "/static/"

// types are those of the files.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".webmanifest": "application/manifest+json",
}

// serveStatic serves the files. Of an earlier version there are none: a page that is open
// over an update loads itself again.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind := types[path.Ext(name)]
	b, err := static.ReadFile("static/" + name)
	if r.PathValue("version") != version() || kind == "" || err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(b) //nolint:gosec // it is part of the program
}
