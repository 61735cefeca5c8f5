//! A report as a page: one file that a browser opens, with nothing loaded from elsewhere.
//!
//! What the page shows is data in it, and its own script draws it. Paths and keys are chosen by clients, so the data is written
//! in a way that no parser of HTML takes for markup, and only a script with the nonce of this page runs.

mod content;
mod traffic;

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub(crate) use self::content::{Content, OverTime, Picture, PolicyContent, shown};
pub(crate) use self::traffic::Traffic;

/// A file for a page. It is written under another name first, so that no reader sees half of it.
pub(crate) struct Page {
    file: File,
    path: PathBuf,
    unfinished: Unfinished,
}

/// The file under the other name, which is removed unless it becomes the page.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Page {
    /// Makes sure that the file can be written, before a log is read.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("--html: {}: {error}", path.display());
        match fs::metadata(path) {
            // Another name for the terminal, or a folder, would be replaced.
            Ok(there) if !there.is_file() => {
                return Err(format!("--html: {}: it is not a file", path.display()));
            }
            Ok(there) if there.permissions().readonly() => {
                return Err(failed(io::ErrorKind::PermissionDenied.into()));
            }
            _ => {}
        }
        // The file that a link names is replaced, and not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(beside);
        let file = OpenOptions::new().write(true).create_new(true).open(&beside);
        let file = file.map_err(failed)?;
        Ok(Self { file, path, unfinished: Unfinished(beside) })
    }

    /// Writes the page.
    pub(crate) fn write(mut self, content: &Content) -> Result<(), Box<dyn Error>> {
        let failed = |error: io::Error| format!("--html: {}: {error}", self.path.display());
        let page = page(content, &nonce()?)?;
        self.file.write_all(page.as_bytes()).map_err(failed)?;
        self.file.sync_all().map_err(failed)?;
        fs::rename(&self.unfinished.0, &self.path).map_err(failed)?;
        Ok(())
    }
}

const STYLES: [&str; 2] =
    [include_str!("../../../admin/page/dashboard.css"), include_str!("report.css")];

const SCRIPTS: [&str; 3] = [
    include_str!("../../../admin/page/parts.js"),
    include_str!("../../../admin/page/picture.js"),
    include_str!("report.js"),
];

/// The text of a page whose script has this nonce.
fn page(content: &Content, nonce: &str) -> Result<String, serde_json::Error> {
    let data = inert(&serde_json::to_string(content)?);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; script-src 'nonce-{nonce}'; \
         style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>sluicegate</title>\n"
    );
    for style in STYLES {
        page += &format!("<style nonce=\"{nonce}\">\n{style}</style>\n");
    }
    page += "</head>\n<body>\n";
    page += include_str!("report.html");
    page += &format!("<script id=\"report\" type=\"application/json\">{data}</script>\n");
    for script in SCRIPTS {
        page += &format!("<script nonce=\"{nonce}\">\n{script}</script>\n");
    }
    page += "</body>\n</html>\n";
    Ok(page)
}

/// The same JSON without a character that could end a script, begin markup or end a line. JSON has them in strings only.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                inert.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            _ => inert.push(char),
        }
    }
    inert
}

/// What no client can know.
fn nonce() -> Result<String, getrandom::Error> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_choose_stays_data() {
        let hostile = "</script><script>alert(1)</script><!--\u{2028}\u{2029}&amp;\"'\\";
        let content = Content { summary: hostile.to_owned(), ..Content::default() };
        let page = page(&content, "n").expect("a page");
        assert_eq!(page.matches("</script>").count(), 1 + SCRIPTS.len());
        assert!(!page.contains("alert(1)<") && !page.contains("<!--"), "{page}");
        assert!(!page.contains(['\u{2028}', '\u{2029}']));
        let data = page.split("application/json\">").nth(1).and_then(|rest| rest.split('<').next());
        let data: serde_json::Value = serde_json::from_str(data.expect("data")).expect("JSON");
        assert_eq!(data["summary"], hostile);
    }

    #[test]
    fn nothing_of_a_page_is_elsewhere() {
        let page = page(&Content::default(), "n").expect("a page");
        // The namespace of SVG is a name, and nobody asks for it.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "style=\""]
        {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_page_replaces_a_file_at_the_end_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.html");
        let names = || fs::read_dir(folder.path()).expect("a folder").count();
        fs::write(&path, "before").expect("a file");
        drop(Page::create(&path).expect("a page"));
        assert_eq!((fs::read_to_string(&path).expect("a file").as_str(), names()), ("before", 1));
        let page = Page::create(&path).expect("a page");
        page.write(&Content::default()).expect("written");
        assert!(fs::read_to_string(&path).expect("a file").starts_with("<!doctype html>"));
        assert_eq!(names(), 1);
        for (path, expected) in [
            (folder.path().to_owned(), "it is not a file"),
            (folder.path().join("nowhere/report.html"), "No such file"),
            (PathBuf::from("/"), "it is not a file"),
            (PathBuf::from(""), "--html"),
        ] {
            let failed = Page::create(&path).err().expect("an error");
            assert!(failed.contains(expected), "{failed}");
        }
        #[cfg(unix)]
        assert!(
            Page::create(Path::new("/dev/null")).err().expect("an error").contains("not a file")
        );
    }
}
