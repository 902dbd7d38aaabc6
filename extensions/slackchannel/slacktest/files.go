package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// File is a file of a message.
type File struct {
	ID       string
	Name     string
	MIME     string
	Data     []byte
	Voice    bool // a recorded clip
	Deleted  bool // the message names it, and it is gone
	External bool // it is stored elsewhere

	length int64    // of an upload
	shared []string // conversations
	host   string   // of this server, as the app calls it
}

// addFile stores a file of a person; mu is held.
func (s *Server) addFile(f File) *File {
	s.lastID++
	f.ID = fmt.Sprintf("F%08d", s.lastID)
	s.files[f.ID] = &f
	return &f
}

// DeleteFile deletes a file, which messages still name.
func (s *Server) DeleteFile(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, id)
}

// fileObject encodes a file as Slack does.
func (s *Server) fileObject(f *File) map[string]any {
	if f.Deleted {
		return map[string]any{"id": f.ID, "mode": "tombstone", "name": nil}
	}
	address := "http://" + s.listener.Addr().String() + "/files/" + f.ID + "/" + url.PathEscape(f.Name)
	mode := "hosted"
	if f.External {
		mode, address = "external", "https://elsewhere.example/"+f.Name
	}
	o := map[string]any{
		"id": f.ID, "name": f.Name, "title": f.Name, "mimetype": f.MIME, "size": len(f.Data), "mode": mode,
		"is_external": f.External, "url_private": address, "url_private_download": address, "channels": f.shared,
	}
	if f.Voice {
		o["subtype"] = "slack_audio"
	}
	return o
}

func (s *Server) fileInfo(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[p.Get("file")]
	if f == nil {
		return nil, refuse("file_not_found")
	}
	o := s.fileObject(f)
	shares := map[string]any{}
	for _, id := range f.shared {
		if c := s.convs[id]; c != nil {
			var all []any
			for _, m := range c.messages {
				for _, mine := range m.Files {
					if mine.ID == f.ID {
						all = append(all, map[string]any{"ts": m.TS, "thread_ts": m.Thread})
					}
				}
			}
			shares[id] = all
		}
	}
	o["shares"] = map[string]any{"private": shares}
	return map[string]any{"file": o}, nil
}

// download serves the bytes of a file to the bot's token. Others are led to a page.
func (s *Server) download(w http.ResponseWriter, r *http.Request, release <-chan struct{}) {
	if s.authorize(token(r), "xoxb-") != nil {
		http.Redirect(w, r, "/login?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
		return
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/files/"), "/")
	s.mu.Lock()
	f := s.files[id]
	s.mu.Unlock()
	if f == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.MIME)
	if release != nil {
		pause(r.Context(), w, f.Data, release)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(f.Data)))
	_, _ = w.Write(f.Data) //nolint:gosec // a file of a test
}

func (s *Server) uploadURL(r *http.Request, p url.Values) (any, *refusal) {
	length, err := strconv.ParseInt(p.Get("length"), 10, 64)
	if p.Get("filename") == "" || err != nil || length < 1 {
		return nil, refuse("invalid_arguments")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.addFile(File{Name: p.Get("filename"), length: length, host: r.Host})
	return map[string]any{"upload_url": "http://" + r.Host + "/upload/" + f.ID, "file_id": f.ID}, nil
}

// upload takes the bytes of a file.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	var from io.Reader = r.Body
	if form, err := r.MultipartReader(); err == nil {
		part, err := form.NextPart()
		if err != nil {
			http.Error(w, "no file", http.StatusBadRequest)
			return
		}
		from = part
	}
	data, err := io.ReadAll(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path.Base(r.URL.Path)]
	if err != nil || f == nil || int64(len(data)) != f.length {
		http.Error(w, "the upload is not complete", http.StatusBadRequest)
		return
	}
	f.Data = data
	f.MIME = http.DetectContentType(data)
	_, _ = fmt.Fprintf(w, "OK - %d", len(data))
}

func (s *Server) completeUpload(p url.Values) (any, *refusal) {
	s.mu.Lock()
	defer s.tell()
	var ids []struct{ ID, Title string }
	if json.Unmarshal([]byte(p.Get("files")), &ids) != nil || len(ids) == 0 {
		return nil, refuse("invalid_arguments")
	}
	c, bad := s.writable(p.Get("channel_id"))
	if bad != nil {
		return nil, bad
	}
	m := Message{
		Channel: c.id, Thread: p.Get("thread_ts"), User: Bot, ByBot: true, Text: p.Get("initial_comment"),
		Said: unescape(p.Get("initial_comment")),
	}
	if m.Thread != "" && c.find(m.Thread) < 0 {
		return nil, refuse("thread_not_found")
	}
	var found []any
	for _, one := range ids {
		f := s.files[one.ID]
		if f == nil || f.Data == nil {
			return nil, refuse("file_not_found")
		}
		f.shared = append(f.shared, c.id)
		m.Files = append(m.Files, *f)
		found = append(found, map[string]any{"id": f.ID, "title": one.Title})
	}
	m.TS = s.ts()
	c.messages = append(c.messages, m)
	s.accept(m)
	return map[string]any{"files": found}, nil
}
