package openaitest

import (
	"bytes"
	"fmt"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// withoutPictures returns a request with a short name in the place of each data URL, and
// those by their names. The JSON decoder would read a picture several times, and the time
// of the server counts as the client's where that is measured.
func withoutPictures(raw []byte) (lean []byte, urls map[string]string) {
	const before = `"url":"`
	urls = map[string]string{}
	for {
		at := bytes.Index(raw, []byte(before+"data:"))
		if at < 0 {
			return append(lean, raw...), urls
		}
		at += len(before)
		size := bytes.IndexByte(raw[at:], '"')
		if size < 0 || bytes.IndexByte(raw[at:at+size], '\\') >= 0 {
			return append(lean, raw...), urls
		}
		name := fmt.Sprintf("data:picture-%d", len(urls))
		urls[name] = string(raw[at : at+size])
		lean, raw = append(append(lean, raw[:at]...), name...), raw[at+size:]
	}
}

// take decodes the pictures of a content.
func (c *Content) take(named map[string]string) {
	for _, url := range c.urls {
		if whole, ok := named[url]; ok {
			url = whole
		}
		c.Images = append(c.Images, modelapitest.DataURL(url))
	}
	c.urls = nil
}
