package slackchannel

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/attachment"
)

// file is a file of a message.
type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIME     string `json:"mimetype"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"`
	Subtype  string `json:"subtype"`
	External bool   `json:"is_external"`
	URL      string `json:"url_private_download"`
	Private  string `json:"url_private"`
	Access   string `json:"file_access"`
}

// remoteFile is a file at Slack that an attachment waits for.
type remoteFile struct {
	Attachment int    `json:"attachment"` // its index
	ID         string `json:"id"`
	URL        string `json:"url,omitempty"` // empty: it has to be asked for
}

// Kinds of attachments without a file. The kernel tells them to the person.
const (
	tooLarge    = "file that is too large to store"
	gone        = "file that Slack no longer has"
	notReceived = "file that couldn't be downloaded from Slack"
	elsewhere   = "file that isn't stored at Slack"
)

// kindOf returns the kind of a file as its sender meant it.
func kindOf(f file) string {
	family, _, _ := strings.Cut(f.MIME, "/")
	switch {
	case f.Subtype == "slack_audio":
		return contract.KindVoice
	case f.Subtype == "slack_video", family == "video":
		return contract.KindVideo
	case family == "image":
		return contract.KindImage
	case family == "audio":
		return contract.KindAudio
	}
	return contract.KindDocument
}

// unreadable returns why a file cannot be had; empty: it can.
func (f file) unreadable() string {
	switch {
	case f.Mode == "tombstone", f.Mode == "hidden_by_limit":
		return gone
	case f.External, f.Mode == "external":
		return elsewhere
	}
	return ""
}

// attachmentsOf returns the attachments of a message, without their bytes.
func attachmentsOf(files []file) (all []contract.Attachment) {
	for _, f := range files {
		a := contract.Attachment{Kind: kindOf(f), Name: attachment.Name(f.Name), MIME: f.MIME, Size: f.Size}
		if why := f.unreadable(); why != "" {
			a = without(a, why)
		}
		all = append(all, a)
	}
	return all
}

// without returns an attachment whose file cannot be had.
func without(a contract.Attachment, why string) contract.Attachment {
	return contract.Attachment{Kind: why, Name: a.Name, Size: a.Size}
}

// filesOf returns the files to download.
func filesOf(files []file) (all []remoteFile) {
	for i, f := range files {
		if f.unreadable() != "" || f.ID == "" {
			continue
		}
		address := f.URL
		if address == "" {
			address = f.Private
		}
		if f.Access == "check_file_info" {
			address = ""
		}
		all = append(all, remoteFile{Attachment: i, ID: f.ID, URL: address})
	}
	return all
}
