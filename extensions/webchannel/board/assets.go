package board

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// The addresses change with the files, so that browsers may keep them.
var (
	stylePath  = assetPath("board.css")
	scriptPath = assetPath("board.js")
)

func assetPath(name string) string {
	sum := sha256.Sum256(asset(name))
	return "/static/" + hex.EncodeToString(sum[:8]) + "/" + name
}

func asset(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return data
}

// assets serves the style and the script.
func (b *board) assets(mux *http.ServeMux) {
	for path, file := range map[string]struct{ name, kind string }{
		stylePath: {"board.css", "text/css; charset=utf-8"}, scriptPath: {"board.js", "text/javascript; charset=utf-8"},
	} {
		data := asset(file.name)
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.kind)
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
			_, _ = w.Write(data)
		})
	}
}
