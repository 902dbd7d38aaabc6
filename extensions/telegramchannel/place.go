package telegramchannel

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"

	"github.com/switchboard-run/switchboard/contract"
)

// Methods of what has no file.
const (
	sendsLocation = "location"
	sendsVenue    = "venue"
	sendsContact  = "contact"
)

// placeOf returns how a location or a contact is sent: the method, and its fields. The name
// has the form that attachmentOf gives it. Empty: its name stands in the text.
func placeOf(a contract.Attachment) (method string, fields map[string]string) {
	switch {
	case a.Blob != "":
	case a.Kind == contract.KindLocation:
		return locationOf(strings.TrimSpace(a.Name))
	case a.Kind == contract.KindContact:
		return contactOf(strings.TrimSpace(a.Name))
	}
	return "", nil
}

// locationOf reads "52.52, 13.4", or a venue: "Zoo, Budapester Str. 1 (52.52, 13.4)".
func locationOf(name string) (method string, fields map[string]string) {
	method, position, title := sendsLocation, name, ""
	if i := strings.LastIndex(name, "("); i > 0 && strings.HasSuffix(name, ")") {
		method, title, position = sendsVenue, strings.TrimSpace(name[:i]), name[i+1:len(name)-1]
	}
	latitude, longitude, _ := strings.Cut(position, ",")
	fields = map[string]string{"latitude": strings.TrimSpace(latitude), "longitude": strings.TrimSpace(longitude)}
	if !isDegrees(fields["latitude"], 90) || !isDegrees(fields["longitude"], 180) {
		return "", nil
	}
	if method == sendsVenue {
		name, address, _ := strings.Cut(title, ", ")
		fields["title"], fields["address"] = name, cmp.Or(address, name) // Telegram takes none without an address
	}
	return method, fields
}

// isDegrees reports whether a text is a number between -most and most.
func isDegrees(text string, most float64) bool {
	d, err := strconv.ParseFloat(text, 64)
	return err == nil && d >= -most && d <= most
}

// contactOf reads "Anna Lee, +49 30 1234".
func contactOf(name string) (method string, fields map[string]string) {
	i := strings.LastIndex(name, ",")
	person, phone := strings.TrimSpace(name[:max(i, 0)]), strings.TrimSpace(name[i+1:])
	digits := 0
	for _, r := range phone {
		switch {
		case unicode.IsDigit(r):
			digits++
		case !strings.ContainsRune("+-()./ ", r):
			return "", nil
		}
	}
	if digits < 3 {
		return "", nil
	}
	return sendsContact, map[string]string{"first_name": cmp.Or(person, phone), "phone_number": phone}
}

// split returns what is sent besides a text, files first, and what is named in the text.
func split(attachments []contract.Attachment) (sent, named []contract.Attachment) {
	var places []contract.Attachment
	for _, a := range attachments {
		if method, _ := placeOf(a); method != "" {
			places = append(places, a)
		} else if a.Blob != "" {
			sent = append(sent, a)
		} else {
			named = append(named, a)
		}
	}
	return append(sent, places...), named
}
