package telegramchannel

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/attachment"
)

// remoteFile is a file at Telegram.
type remoteFile struct {
	ID   string `json:"id,omitempty"`   // empty: there is nothing to download
	Size int64  `json:"size,omitempty"` // 0: unknown
}

// maxDownload is the size of the largest file that Telegram gives to a bot.
const maxDownload = 20 << 20

// Kinds of attachments without a file. The kernel tells them to the person.
const (
	tooLarge    = "file over 20 MB, which Telegram doesn't pass on to bots"
	tooLargeFor = "file that is too large to store"
	gone        = "file that Telegram no longer has"
	notReceived = "file that couldn't be downloaded from Telegram"
)

// attachmentOf returns the attachment of a message, and its file. Polls and the like are
// attachments without a file.
func attachmentOf(m *models.Message) (a contract.Attachment, f remoteFile, ok bool) {
	set := func(kind, name, mime, id string, size int64) {
		a = contract.Attachment{Kind: kind, Name: attachment.Name(name), MIME: mime, Size: size}
		f = remoteFile{ID: id, Size: size}
	}
	switch {
	case len(m.Photo) > 0:
		p := largest(m.Photo)
		set(contract.KindImage, "", "", p.FileID, int64(p.FileSize))
	case m.Voice != nil:
		set(contract.KindVoice, minutes(m.Voice.Duration), m.Voice.MimeType, m.Voice.FileID, m.Voice.FileSize)
	case m.VideoNote != nil:
		set(contract.KindVideo, "", "", m.VideoNote.FileID, int64(m.VideoNote.FileSize))
	case m.Animation != nil: // also has a document
		set(contract.KindVideo, m.Animation.FileName, m.Animation.MimeType, m.Animation.FileID, m.Animation.FileSize)
	case m.Document != nil:
		set(contract.KindDocument, m.Document.FileName, m.Document.MimeType, m.Document.FileID, m.Document.FileSize)
	case m.Audio != nil:
		name := cmp.Or(m.Audio.FileName, strings.Trim(m.Audio.Performer+" - "+m.Audio.Title, " -"))
		set(contract.KindAudio, name, m.Audio.MimeType, m.Audio.FileID, m.Audio.FileSize)
	case m.Video != nil:
		set(contract.KindVideo, m.Video.FileName, m.Video.MimeType, m.Video.FileID, m.Video.FileSize)
	case m.Sticker != nil:
		a, f = stickerOf(m.Sticker)
	case m.Venue != nil: // also has a location
		set(contract.KindLocation, m.Venue.Title+", "+m.Venue.Address+" ("+point(&m.Venue.Location)+")", "", "", 0)
	case m.Location != nil:
		set(contract.KindLocation, point(m.Location), "", "", 0)
	case m.Contact != nil:
		name := strings.TrimSpace(m.Contact.FirstName + " " + m.Contact.LastName)
		set(contract.KindContact, strings.Trim(name+", "+m.Contact.PhoneNumber, ", "), "", "", 0)
	default:
		if a.Kind = otherKind(m); a.Kind == "" {
			return a, f, false
		}
	}
	if f.Size > maxDownload {
		return unreadable(a, tooLarge), remoteFile{}, true
	}
	return a, f, true
}

// unreadable returns an attachment whose file cannot be had.
func unreadable(a contract.Attachment, why string) contract.Attachment {
	return contract.Attachment{Kind: why, Name: a.Name, Size: a.Size}
}

// minutes is a duration for people, such as 0:12. It is the name of a voice message, which
// has none.
func minutes(seconds int) string { return fmt.Sprintf("%d:%02d", seconds/60, seconds%60) }

func largest(sizes []models.PhotoSize) models.PhotoSize {
	best := sizes[0]
	for _, p := range sizes[1:] {
		if p.Width*p.Height > best.Width*best.Height {
			best = p
		}
	}
	return best
}

// stickerOf returns a sticker as an image. Of one that moves this is its preview.
func stickerOf(s *models.Sticker) (contract.Attachment, remoteFile) {
	a := contract.Attachment{Kind: contract.KindImage, Name: strings.TrimSpace("sticker " + s.Emoji)}
	switch {
	case !s.IsAnimated && !s.IsVideo:
		return a, remoteFile{ID: s.FileID, Size: int64(s.FileSize)}
	case s.Thumbnail != nil:
		a.Name += " (animated: one frame of it)"
		return a, remoteFile{ID: s.Thumbnail.FileID, Size: int64(s.Thumbnail.FileSize)}
	}
	return contract.Attachment{Kind: "animated sticker", Name: s.Emoji}, remoteFile{}
}

// point returns a position in degrees, to about a meter.
func point(l *models.Location) string {
	degrees := func(d float64) string {
		text := strings.TrimRight(strconv.FormatFloat(d, 'f', 5, 64), "0")
		return strings.TrimSuffix(text, ".")
	}
	return degrees(l.Latitude) + ", " + degrees(l.Longitude)
}

func otherKind(m *models.Message) string {
	switch {
	case m.Poll != nil:
		return "poll"
	case m.Story != nil:
		return "story"
	case m.Dice != nil:
		return "dice"
	case m.Game != nil:
		return "game"
	case m.Checklist != nil:
		return "checklist"
	case m.PaidMedia != nil:
		return "paid media"
	}
	return ""
}
