package telegramtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const maxBody = 64 << 20

// params are the parameters of one call: strings unchanged, everything else as JSON, files
// as their bytes. The name of a file is under "name " and its parameter.
type params map[string]string

// readParams reads parameters from the query and from a form, multipart or JSON body.
func readParams(r *http.Request) (params, error) {
	p := params{}
	if r.URL.RawQuery != "" {
		p.addForm(r.URL.Query())
	}
	kind, attrs, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := io.LimitReader(r.Body, maxBody)
	switch kind {
	case "multipart/form-data":
		return p, p.addMultipart(multipart.NewReader(body, attrs["boundary"]))
	case "application/json":
		return p, p.addJSON(body)
	case "application/x-www-form-urlencoded":
		text, err := io.ReadAll(body)
		if err != nil {
			return p, err
		}
		form, err := url.ParseQuery(string(text))
		p.addForm(form)
		return p, err
	}
	_, err := io.Copy(io.Discard, body)
	return p, err
}

func (p params) addForm(form url.Values) {
	for k, v := range form {
		p[k] = v[0]
	}
}

func (p params) addMultipart(mr *multipart.Reader) error {
	for {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			// A form without a single field is sent as an empty body.
			if len(p) == 0 && strings.Contains(err.Error(), "EOF") {
				return nil
			}
			return err
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		p[part.FormName()] = string(text)
		if name := part.FileName(); name != "" {
			p["name "+part.FormName()] = name
		}
	}
}

func (p params) addJSON(body io.Reader) error {
	text, err := io.ReadAll(body)
	if err != nil || len(text) == 0 {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("body is not a JSON object: %w", err)
	}
	for k, v := range fields {
		var s string
		if json.Unmarshal(v, &s) == nil && string(v) != "null" {
			p[k] = s
		} else if string(v) != "null" {
			p[k] = string(v)
		}
	}
	return nil
}

func (p params) int(name string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(p[name]), 10, 64)
	return n
}

// json decodes a JSON parameter into v; without it v is unchanged.
func (p params) json(name string, v any) error {
	if p[name] == "" {
		return nil
	}
	return json.Unmarshal([]byte(p[name]), v)
}
